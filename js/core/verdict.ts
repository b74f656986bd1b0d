// A verdict as a sentence. The sentence comes first, the numbers behind it.

import { micros, ratio, ratioWithInterval } from './format';
import type { Status, Verdict } from './protocol';

/** How the views treat a node: its class decides fill and quietness. */
export type Outcome = 'stock' | 'pending' | 'faster' | 'slower' | 'failed';

const WORDS: Record<Status, string> = {
  parse_error: 'could not be read',
  rejected: 'rejected',
  compile_error: 'did not compile',
  duplicate: 'same as another kernel',
  launch_error: 'could not be launched',
  crashed: 'crashed',
  timeout: 'ran out of time',
  out_of_bounds: 'wrote out of bounds',
  unwritten: 'left outputs unwritten',
  mutated_input: 'changed an input',
  wrong: 'wrong result',
  nondeterministic: 'not deterministic',
  unverified: 'could not be verified',
  impossible: 'faster than the hardware allows',
  slower: 'correct, not faster',
  faster: 'faster'
};

export function statusWords(status: string): string {
  return WORDS[status as Status] ?? status.replace(/_/g, ' ');
}

export function outcome(verdict: Verdict | undefined): Outcome {
  if (!verdict) {
    return 'pending';
  }
  return verdict.status === 'faster' || verdict.status === 'slower' ? verdict.status : 'failed';
}

/** One line: "faster 1.42×", "wrong result", "being judged". */
export function headline(verdict: Verdict | undefined): string {
  if (!verdict) {
    return 'being judged';
  }
  const t = verdict.timing;
  if (verdict.status === 'faster' && t) {
    return `faster ${ratio(t.speedup)}`;
  }
  if (verdict.status === 'slower' && t) {
    return `correct, ${ratio(t.speedup)}`;
  }
  return statusWords(verdict.status);
}

/** The sentence of the node panel, always against what. */
export function sentence(verdict: Verdict | undefined): string {
  if (!verdict) {
    return 'Waiting for the judge.';
  }
  const t = verdict.timing;
  if (t && (verdict.status === 'faster' || verdict.status === 'slower')) {
    const word = verdict.status === 'faster' ? 'Faster' : 'Correct, but not faster';
    const against = `${micros(t.kernel_us)} against ${micros(t.stock_us)} of ${t.stock}`;
    return `${word}: ${ratioWithInterval(t.speedup, t.low, t.high)}, ${against}.`;
  }
  const words = statusWords(verdict.status);
  const head = words[0].toUpperCase() + words.slice(1);
  return verdict.evidence ? `${head}: ${verdict.evidence}` : `${head}.`;
}

export function checkCount(verdict: Verdict): number {
  return Object.values(verdict.checks).reduce((sum, n) => sum + n, 0);
}
