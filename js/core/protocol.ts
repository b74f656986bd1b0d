// The wire between a run and everything that shows it. The event names and fields mirror
// kernelforge_lab/events.py; tests/notebook/events.json is checked against both sides.

export type Status =
  | 'parse_error'
  | 'rejected'
  | 'compile_error'
  | 'duplicate'
  | 'launch_error'
  | 'crashed'
  | 'timeout'
  | 'out_of_bounds'
  | 'unwritten'
  | 'mutated_input'
  | 'wrong'
  | 'nondeterministic'
  | 'unverified'
  | 'impossible'
  | 'slower'
  | 'faster';

export interface Timing {
  kernel_us: number;
  stock: string;
  stock_us: number;
  speedup: number;
  low: number;
  high: number;
  samples: number;
  clock: string;
}

export interface Verdict {
  status: Status;
  evidence: string;
  checks: Record<string, number>;
  max_error: number | null;
  timing: Timing | null;
  stocks_us: Record<string, number>;
  resources: Record<string, number>;
  binary_hash: string;
  seconds: number;
}

export interface RegionInfo {
  hash: string;
  title: string;
  text: string;
  ops: string[];
  count: number;
  time_us: number;
  share: number;
  floor_us: number;
  ceiling: number;
  eligible: boolean;
  reason: string;
  inputs: string[];
  outputs: string[];
  /** What one call must move and compute, where the capture says so (else estimated from the text). */
  bytes?: number;
  flops?: number;
}

export interface VendorOp {
  name: string;
  count: number;
  time_us: number;
  share: number;
}

interface Stamped {
  seq?: number;
  at_s?: number;
}

export interface RunStarted extends Stamped {
  kind: 'run_started';
  run: string;
  title: string;
  target: string;
  device: string;
  level: string;
  seed: number;
  proposers: string[];
  budget: Record<string, number>;
  step_ms: number;
  busy: number;
  ceiling: number;
  roofs: Record<string, number>;
  regions: RegionInfo[];
  vendor: VendorOp[];
  uncaptured: string[];
  advice: string;
}

export interface RegionState extends Stamped {
  kind: 'region_state';
  region: string;
  state: string;
  reason: string;
  best: number | null;
  speedup: number | null;
  low: number | null;
  high: number | null;
}

export interface NodeAdded extends Stamped {
  kind: 'node_added';
  node: number;
  region: string;
  parent: number | null;
  proposer: string;
  strategy: string;
  idea: string;
  source: string;
  params: Record<string, number>;
  /** Written by the packer: the text is that of this earlier node. */
  source_node?: number;
  /** Written by the packer: the text was left out and has this many characters. */
  source_chars?: number;
}

export interface NodeJudged extends Stamped {
  kind: 'node_judged';
  node: number;
  region: string;
  verdict: Verdict;
  reward: number;
}

/** A person's mark: pinned, pruned, or empty when it was taken away. */
export interface NodeMarked extends Stamped {
  kind: 'node_marked';
  node: number;
  region: string;
  mark: string;
}

/** One call of a language model. */
export interface ModelCalled extends Stamped {
  kind: 'model_called';
  node: number | null;
  region: string;
  parent: number | null;
  model: string;
  prompt: string;
  reply: string;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  usd: number;
  seconds: number;
  outcome: string;
  reason: string;
  reasoning_tokens: number;
  is_estimate: boolean;
  /** Written by the packer: prompt and reply were left out and have this many characters. */
  text_chars?: number;
}

export interface Meter extends Stamped {
  kind: 'meter';
  trials: number;
  trials_max: number;
  elapsed_s: number;
  limit_s: number;
  eta_s: number | null;
  spent_usd: number;
  budget_usd: number;
  doing: string;
}

export interface RunState extends Stamped {
  kind: 'run_state';
  state: string;
  message: string;
}

export interface StepMeasured extends Stamped {
  kind: 'step_measured';
  stock: string;
  stock_ms: number;
  forged_ms: number;
  speedup: number;
  low: number;
  high: number;
  max_error: number;
  equal: boolean;
  installed: boolean;
  stock_bytes: number;
  forged_bytes: number;
  message: string;
}

export interface GuardCounts extends Stamped {
  kind: 'guard_counts';
  hits: number;
  fallbacks: Record<string, number>;
}

export interface Log extends Stamped {
  kind: 'log';
  level: string;
  message: string;
}

export type RunEvent =
  | RunStarted
  | RegionState
  | NodeAdded
  | NodeJudged
  | NodeMarked
  | ModelCalled
  | Meter
  | RunState
  | StepMeasured
  | GuardCounts
  | Log;

/**
 * Takes a view from `from` events to `to` (events are numbered from 1, so these are seq from+1 … to).
 * Superseded ones may be missing inside, so `to` and not the length says how far the log has been read.
 */
export interface Batch {
  v: 1;
  kind: 'events' | 'reset';
  from: number;
  to: number;
  events: RunEvent[];
}

export interface SourceText {
  v: 1;
  kind: 'source';
  node: number;
  source: string;
}

export interface CallTexts {
  v: 1;
  kind: 'calls';
  node: number;
  calls: ModelCalled[];
}

/** What became of a command; sent only when there is something to say. */
export interface Answer {
  v: 1;
  kind: 'answer';
  to: string;
  error: string;
  text: string;
}

/** The notebook output of the run as it stands now: data by MIME type. */
export interface Bundle {
  v: 1;
  kind: 'bundle';
  data: Record<string, unknown>;
}

export type FromKernel = Batch | SourceText | CallTexts | Answer | Bundle;

/** Bubbles up from a live view: the output should now store this (detail: the data of a Bundle). */
export const BUNDLE_EVENT = 'kernelforge-bundle';
/** Sent down to a live view before the notebook is saved: answer with the run so far (detail.saved). */
export const PACK_EVENT = 'kernelforge-pack';

/** The commands of kernelforge_lab/steering.py, and the report. */
export type CommandName =
  | 'pause'
  | 'resume'
  | 'stop'
  | 'add_budget'
  | 'switch'
  | 'pin'
  | 'prune'
  | 'unmark'
  | 'continue_from'
  | 'submit'
  | 'guard_counts'
  | 'report';

export type ToKernel =
  | { v: 1; kind: 'hello'; have: number }
  | { v: 1; kind: CommandName; arguments?: Record<string, unknown>; format?: string }
  | { v: 1; kind: 'want'; what: 'source' | 'calls'; node: number }
  | { v: 1; kind: 'want'; what: 'bundle' };

/** What a saved notebook and a report hold: the packed log of a run. */
export interface Saved {
  v: 1;
  from: number;
  to: number;
  events: RunEvent[];
  model_id?: string;
}
