// The list of stored runs, read again while somebody looks or something runs; panel and status bar share it.

import { FINAL_STATES } from '../core/store';
import { NoServer, type RunsApi, type StoredRun } from './api';

export class RunList {
  runs: StoredRun[] = [];
  /** Why there is no list, in words. */
  trouble = '';
  pollMs = 3000;
  private watchers = new Set<() => boolean>();
  private listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private gone = false;

  constructor(readonly api: RunsApi) {}

  /** `isLooking` says whether its owner is on the screen. */
  watch(isLooking: () => boolean, listener: () => void): () => void {
    this.watchers.add(isLooking);
    this.listeners.add(listener);
    void this.refresh();
    return () => {
      this.watchers.delete(isLooking);
      this.listeners.delete(listener);
    };
  }

  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    try {
      this.runs = await this.api.list();
      this.trouble = '';
    } catch (error) {
      this.gone = error instanceof NoServer;
      this.trouble = error instanceof Error ? error.message : String(error);
    }
    this.listeners.forEach(listener => listener());
    this.again();
  }

  get running(): StoredRun | undefined {
    return this.runs.find(isRunning);
  }

  private again(): void {
    clearTimeout(this.timer);
    if (this.gone || !this.watchers.size) {
      return;
    }
    this.timer = setTimeout(() => {
      const looked = !document.hidden && (this.running || [...this.watchers].some(isLooking => isLooking()));
      if (looked) {
        void this.refresh();
      } else {
        this.again();
      }
    }, this.pollMs);
  }
}

/** A search says something every second or so; one that was silent for a minute has gone with its kernel. */
export function isRunning(run: StoredRun): boolean {
  return !FINAL_STATES.has(run.state) && Date.now() / 1000 - run.updated_at < 60;
}

export function stateOf(run: StoredRun): string {
  return FINAL_STATES.has(run.state) || isRunning(run) ? run.state : 'kernel gone';
}
