// The left panel: this notebook's runs, then everything the store has.

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { usd } from '../core/format';
import { button } from '../views/controls';
import { h, replace } from '../views/dom';
import type { StoredRun } from './api';
import { RUN_MIME } from './renderer';
import { stateOf, type RunList } from './runs';

export interface PanelActions {
  open(run: StoredRun): void;
  compare(runs: StoredRun[]): void;
  report(run: StoredRun): void;
}

export class RunsPanel extends Widget {
  confirmDelete = true;
  private chosen = new Set<string>();
  private unwatch: () => void;
  private body = h('div', 'kf-runs-body');
  private compare = button('Compare', 'compare the two chosen runs', () => this.actions.compare(this.list.runs.filter(r => this.chosen.has(r.id))));
  private drawn = '';

  constructor(
    private list: RunList,
    private tracker: INotebookTracker,
    private actions: PanelActions
  ) {
    super();
    this.id = 'kernelforge-runs';
    this.title.caption = 'Kernelforge runs';
    this.title.label = '';
    this.title.iconClass = 'kf-tab-icon jp-SideBar-tabIcon';
    this.addClass('kf-runs');
    const again = button('Refresh', 'read the store again', () => void list.refresh());
    this.node.append(h('div', 'kf-root kf-side', h('div', 'kf-runs-head', h('h2', 'kf-runs-title', 'Kernelforge runs'), this.compare, again), this.body));
    this.unwatch = list.watch(() => this.isVisible, () => this.draw());
    tracker.currentChanged.connect(this.draw, this);
  }

  dispose(): void {
    this.unwatch();
    this.tracker.currentChanged.disconnect(this.draw, this);
    super.dispose();
  }

  protected onAfterShow(): void {
    void this.list.refresh();
  }

  draw(): void {
    const { runs, trouble } = this.list;
    const here = runsOf(this.tracker.currentWidget);
    const key = JSON.stringify([runs.map(r => [r, stateOf(r)]), trouble, [...here], [...this.chosen]]);
    if (key === this.drawn) {
      return;
    }
    this.drawn = key;
    this.compare.disabled = this.chosen.size !== 2;
    if (trouble && !runs.length) {
      replace(this.body, h('p', 'kf-empty', trouble));
      return;
    }
    if (!runs.length) {
      replace(this.body, h('p', 'kf-empty', 'No run yet. Put %%forge above a cell that calls a model.'));
      return;
    }
    const mine = runs.filter(r => here.has(r.id));
    replace(this.body, ...this.group('This notebook', mine), ...this.group(mine.length ? 'Others' : 'Stored', runs.filter(r => !here.has(r.id))));
  }

  private group(title: string, runs: StoredRun[]): HTMLElement[] {
    return runs.length ? [h('h3', 'kf-runs-group', title), h('ul', 'kf-runs-list', ...runs.map(run => this.row(run)))] : [];
  }

  private row(run: StoredRun): HTMLElement {
    const name = `${run.title}, ${when(run)}`;
    const pick = h('input', { attrs: { type: 'checkbox', 'aria-label': `choose ${name} to compare` } });
    pick.checked = this.chosen.has(run.id);
    pick.addEventListener('change', () => {
      if (pick.checked) {
        this.chosen.add(run.id);
      } else {
        this.chosen.delete(run.id);
      }
      this.draw();
    });
    const state = stateOf(run);
    const facts = [when(run), run.target, `${run.judged} kernels`, run.spent_usd > 0 ? usd(run.spent_usd) : ''].filter(Boolean).join(' · ');
    const labelled = (b: HTMLButtonElement, what: string) => {
      b.setAttribute('aria-label', `${what} ${name}`);
      return b;
    };
    return h(
      'li',
      { class: 'kf-run-row', attrs: { 'data-run': run.id } },
      h('div', 'kf-run-line', pick, h('span', { class: 'kf-run-name', title: run.id }, run.title), h('span', { class: 'kf-run-state', attrs: { 'data-state': state === 'kernel gone' ? 'gone' : state } }, state)),
      h('div', 'kf-run-best', run.best),
      h('div', 'kf-run-facts', facts),
      h(
        'div',
        'kf-run-buttons',
        labelled(button('Open', 'open in the main area', () => this.actions.open(run)), 'open'),
        labelled(button('Report', 'write the report', () => this.actions.report(run)), 'write the report of'),
        labelled(button('Delete', 'remove it from the store', () => void this.remove(run)), 'delete')
      )
    );
  }

  private async remove(run: StoredRun): Promise<void> {
    if (this.confirmDelete) {
      const body = `${run.title} of ${when(run)} with its ${run.judged} kernels is removed from the store. Notebooks that show it keep their pictures.`;
      const answer = await showDialog({ title: 'Delete this run?', body, buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: 'Delete' })] });
      if (!answer.button.accept) {
        return;
      }
    }
    await this.list.api.remove(run.id);
    this.chosen.delete(run.id);
    await this.list.refresh();
  }
}

/** Ids of the runs that a notebook's outputs show, newest last. */
export function runsOf(notebook: NotebookPanel | null): Set<string> {
  const found = new Set<string>();
  for (const cell of notebook?.content.model?.cells ?? []) {
    const outputs = cell.toJSON().outputs;
    for (const output of Array.isArray(outputs) ? (outputs as { data?: Record<string, unknown> }[]) : []) {
      const saved = output.data?.[RUN_MIME] as { events?: { kind: string; run?: string }[] } | undefined;
      const id = saved?.events?.find(e => e.kind === 'run_started')?.run;
      if (id) {
        found.add(id);
      }
    }
  }
  return found;
}

function when(run: StoredRun): string {
  return new Date(run.started_at * 1000).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
}
