// The run as a pure reduction of its events, and the small store that views subscribe to.

import type {
  Answer,
  Batch,
  GuardCounts,
  Log,
  Meter,
  ModelCalled,
  RegionInfo,
  RunEvent,
  RunStarted,
  Saved,
  StepMeasured,
  Verdict
} from './protocol';
import { packed } from './pack';
import { outcome } from './verdict';

export interface TreeNode {
  id: number;
  region: string;
  parent: number | null;
  proposer: string;
  strategy: string;
  idea: string;
  source: string;
  sourceNode: number | null;
  sourceChars: number;
  params: Record<string, number>;
  verdict?: Verdict;
  reward: number;
  /** pinned, pruned or empty. */
  mark: string;
  calls: ModelCalled[];
  atS: number;
  children: number[];
}

export interface RegionView {
  info: RegionInfo;
  state: string;
  reason: string;
  best: number | null;
  /** Stock over best kernel with its interval; null while nothing is proven faster. */
  speedup: number | null;
  low: number | null;
  high: number | null;
  nodes: number[];
  roots: number[];
  failed: number;
  correct: number;
  /** Of best stock, known after the first judged kernel. */
  stockUs: number | null;
}

/** One step of the "best so far" line. */
export interface ProgressPoint {
  trial: number;
  atS: number;
  usd: number;
  step: number;
  /** The kernel that brought it; null when a best was withdrawn. */
  node: number | null;
}

export interface Run {
  started: RunStarted | null;
  state: string;
  message: string;
  meter: Meter | null;
  step: StepMeasured | null;
  guard: GuardCounts | null;
  logs: Log[];
  calls: ModelCalled[];
  regions: Map<string, RegionView>;
  nodes: Map<number, TreeNode>;
  judged: number;
  progress: ProgressPoint[];
}

const NOTHING_WON = { best: null, speedup: null, low: null, high: null };
const LOGS_KEPT = 200;
export const FINAL_STATES: ReadonlySet<string> = new Set(['finished', 'stopped', 'failed']);

export function emptyRun(): Run {
  return {
    started: null,
    state: 'starting',
    message: '',
    meter: null,
    step: null,
    guard: null,
    logs: [],
    calls: [],
    regions: new Map(),
    nodes: new Map(),
    judged: 0,
    progress: []
  };
}

/** Each region's root: what PyTorch does, measured. */
export function isStock(node: TreeNode): boolean {
  return node.proposer === 'stock';
}

/** Fold one event into the run (in place: a run of 10,000 nodes is never copied). */
export function reduce(run: Run, event: RunEvent): void {
  switch (event.kind) {
    case 'run_started':
      run.started = event;
      for (const info of event.regions) {
        run.regions.set(info.hash, newRegion(info));
      }
      break;
    case 'region_state': {
      const region = run.regions.get(event.region);
      if (region) {
        const { state, reason, best, speedup, low, high } = event;
        // A best that is no gain is not a best: stock stays.
        const won = speedup !== null && speedup > 1 ? { best, speedup, low, high } : NOTHING_WON;
        Object.assign(region, { state, reason }, won);
        noteProgress(run, best, event.at_s);
      }
      break;
    }
    case 'node_added':
      addNode(run, event);
      break;
    case 'node_judged':
      judge(run, event.node, event.verdict, event.reward);
      break;
    case 'node_marked': {
      const node = run.nodes.get(event.node);
      if (node) {
        node.mark = event.mark;
      }
      break;
    }
    case 'model_called':
      run.calls.push(event);
      if (event.node !== null) {
        run.nodes.get(event.node)?.calls.push(event);
      }
      break;
    case 'meter':
      run.meter = event;
      break;
    case 'run_state':
      run.state = event.state;
      run.message = event.message;
      break;
    case 'step_measured':
      run.step = event;
      break;
    case 'guard_counts':
      run.guard = event;
      break;
    case 'log':
      run.logs.push(event);
      if (run.logs.length > LOGS_KEPT) {
        run.logs.splice(0, run.logs.length - LOGS_KEPT);
      }
      break;
  }
}

function newRegion(info: RegionInfo): RegionView {
  return {
    info,
    state: info.eligible ? 'waiting' : 'ineligible',
    reason: info.reason,
    best: null,
    speedup: null,
    low: null,
    high: null,
    nodes: [],
    roots: [],
    failed: 0,
    correct: 0,
    stockUs: null
  };
}

function addNode(run: Run, event: Extract<RunEvent, { kind: 'node_added' }>): void {
  if (run.nodes.has(event.node)) {
    return;
  }
  const node: TreeNode = {
    id: event.node,
    region: event.region,
    parent: event.parent,
    proposer: event.proposer,
    strategy: event.strategy,
    idea: event.idea,
    source: event.source,
    sourceNode: event.source_node ?? null,
    sourceChars: event.source_chars ?? event.source.length,
    params: event.params,
    reward: 0,
    mark: '',
    calls: [],
    atS: seconds(run, event.at_s),
    children: []
  };
  run.nodes.set(node.id, node);
  const region = run.regions.get(node.region);
  region?.nodes.push(node.id);
  const parent = node.parent === null ? undefined : run.nodes.get(node.parent);
  if (parent) {
    parent.children.push(node.id);
  } else {
    region?.roots.push(node.id);
  }
}

function judge(run: Run, id: number, verdict: Verdict, reward: number): void {
  const node = run.nodes.get(id);
  if (!node) {
    return;
  }
  const region = run.regions.get(node.region);
  const first = !node.verdict;
  if (node.verdict && region) {
    // Judged again (finalists are, in a fresh process): the newer verdict counts.
    count(region, node.verdict, -1);
  }
  node.verdict = verdict;
  node.reward = reward;
  if (region && verdict.timing) {
    region.stockUs = verdict.timing.stock_us;
  }
  if (isStock(node)) {
    return;
  }
  run.judged += first ? 1 : 0;
  if (region) {
    count(region, verdict, 1);
  }
}

function count(region: RegionView, verdict: Verdict, by: number): void {
  if (outcome(verdict) === 'failed') {
    region.failed += by;
  } else {
    region.correct += by;
  }
}

function noteProgress(run: Run, node: number | null, atS: number | undefined): void {
  const step = estimatedStep(run);
  const last = run.progress[run.progress.length - 1];
  if (Math.abs((last?.step ?? 1) - step) < 1e-9) {
    return;
  }
  const usd = run.meter?.spent_usd ?? 0;
  run.progress.push({ trial: run.judged, atS: seconds(run, atS), usd, step, node });
}

/** Seconds since the run started; `at_s` is Unix time. */
function seconds(run: Run, at: number | undefined): number {
  return at === undefined || run.started?.at_s === undefined ? (run.meter?.elapsed_s ?? 0) : at - run.started.at_s;
}

/**
 * What the proven region gains would make of the step: 1 / (1 − Σ share·(1 − 1/speedup)). A gain is
 * counted against best stock, so where that is faster than eager the step does better than this.
 */
export function estimatedStep(run: Run): number {
  let saved = 0;
  for (const region of run.regions.values()) {
    if (region.speedup !== null && region.speedup > 1) {
      saved += region.info.share * (1 - 1 / region.speedup);
    }
  }
  return 1 / Math.max(1e-9, 1 - saved);
}

/** Whether every gain that counts was measured again in a fresh process: regions are done only then. */
export function allProven(run: Run): boolean {
  return [...run.regions.values()].every(r => r.speedup === null || r.state === 'done');
}

/** Regions with the largest share first: the order of the table. */
export function rankedRegions(run: Run): RegionView[] {
  return [...run.regions.values()].sort((a, b) => b.info.share - a.info.share);
}

export function sourceOf(run: Run, node: TreeNode): string {
  if (node.source || node.sourceNode === null) {
    return node.source;
  }
  return run.nodes.get(node.sourceNode)?.source ?? '';
}

/** The part of the run that is behind it, in [0, 1]: by trials or by time, whichever is further. */
export function fractionDone(run: Run): number {
  const m = run.meter;
  if (FINAL_STATES.has(run.state)) {
    return 1;
  }
  if (!m) {
    return 0;
  }
  const parts = [m.trials_max > 0 ? m.trials / m.trials_max : 0, m.limit_s > 0 ? m.elapsed_s / m.limit_s : 0];
  return Math.min(1, Math.max(...parts));
}

export interface Selection {
  region: string | null;
  node: number | null;
  hover: number | null;
}

export type Change = 'run' | 'selection' | 'hover';

/** Holds the run, the selection and the listeners. Views never see the comm. */
export class RunStore {
  run = emptyRun();
  /** What the run was folded from, without superseded meters. */
  private events: RunEvent[] = [];
  selection: Selection = { region: null, node: null, hover: null };
  /** Events held; a batch that starts beyond them means something was lost. */
  next = 0;
  /** True while the views may ask for things: a live kernel is on the other side. */
  live = false;
  /** The last thing the kernel said to a command. */
  answer: Answer | null = null;
  /** Set when the kernel that ran this has gone. */
  orphaned = false;
  private listeners = new Set<(change: Change) => void>();
  private followed = true;

  subscribe(listener: (change: Change) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Returns false on a gap: the caller asks for everything since `next`. */
  apply(batch: Pick<Batch, 'from' | 'to' | 'events'> & { kind?: string }): boolean {
    if (batch.kind === 'reset') {
      if (batch.to < this.next) {
        // Another, shorter log: a restarted run behind the same view.
        this.selection = { region: null, node: null, hover: null };
        this.followed = true;
      }
      this.run = emptyRun();
      this.events = [];
      this.next = batch.from;
    }
    if (batch.from > this.next) {
      return false;
    }
    if (batch.to <= this.next && batch.kind !== 'reset') {
      return true;
    }
    for (const event of batch.events) {
      if (batch.kind === 'reset' || event.seq === undefined || event.seq > this.next) {
        reduce(this.run, event);
        this.keep(event);
      }
    }
    this.next = Math.max(this.next, batch.to);
    this.follow();
    this.changed('run');
    return true;
  }

  /** The run so far as a saved notebook holds it. */
  pack(): Saved {
    const best = new Set<number>();
    for (const region of this.run.regions.values()) {
      for (let at = region.best; at !== null && !best.has(at); at = this.run.nodes.get(at)?.parent ?? null) {
        best.add(at);
      }
    }
    return packed(this.events, this.next, best);
  }

  private keep(event: RunEvent): void {
    const last = this.events[this.events.length - 1];
    if (event.kind === 'meter' && last?.kind === 'meter' && last.spent_usd === event.spent_usd) {
      this.events[this.events.length - 1] = event;
    } else {
      this.events.push(event);
    }
  }

  setSource(node: number, source: string): void {
    const found = this.run.nodes.get(node);
    if (found) {
      found.source = source;
      this.changed('run');
    }
  }

  setCalls(node: number, calls: ModelCalled[]): void {
    const found = this.run.nodes.get(node);
    if (found) {
      found.calls = calls;
      this.changed('run');
    }
  }

  setAnswer(answer: Answer | null): void {
    this.answer = answer;
    this.changed('run');
  }

  setOrphaned(orphaned: boolean): void {
    this.orphaned = orphaned;
    this.live = this.live && !orphaned;
    this.changed('run');
  }

  selectRegion(hash: string | null): void {
    this.followed = false;
    const best = hash === null ? null : (this.run.regions.get(hash)?.best ?? null);
    this.selection = { ...this.selection, region: hash, node: best };
    this.changed('selection');
  }

  selectNode(id: number | null): void {
    this.followed = false;
    const node = id === null ? undefined : this.run.nodes.get(id);
    this.selection = { ...this.selection, node: id, region: node?.region ?? this.selection.region };
    this.changed('selection');
  }

  hover(id: number | null): void {
    if (this.selection.hover !== id) {
      this.selection = { ...this.selection, hover: id };
      this.changed('hover');
    }
  }

  /** Until the person picks something, show the region being searched and its best kernel. */
  private follow(): void {
    if (!this.followed) {
      return;
    }
    const ranked = rankedRegions(this.run);
    const active = ranked.find(r => r.state === 'searching' && r.nodes.length > 0);
    const gained = [...ranked].sort((a, b) => worth(b) - worth(a))[0];
    const pick = active ?? (gained && worth(gained) > 0 ? gained : undefined) ?? ranked.find(r => r.nodes.length > 0);
    const region = pick ?? ranked[0];
    this.selection = {
      ...this.selection,
      region: region?.info.hash ?? null,
      node: region?.best ?? region?.roots[0] ?? null
    };
  }

  private changed(change: Change): void {
    for (const listener of this.listeners) {
      listener(change);
    }
  }
}

function worth(region: RegionView): number {
  return region.speedup === null ? 0 : region.info.share * (1 - 1 / region.speedup);
}

