// A line diff in the form a view prints: kept lines far from a change are folded.

import { diffLines } from 'diff';

export type DiffLine =
  | { kind: 'same' | 'added' | 'removed'; text: string; before: number | null; after: number | null }
  | { kind: 'fold'; count: number };

const CONTEXT = 3;

export function lineDiff(before: string, after: string): DiffLine[] {
  const all: Exclude<DiffLine, { kind: 'fold' }>[] = [];
  let [a, b] = [0, 0];
  for (const part of diffLines(ended(before), ended(after))) {
    const kind = part.added ? 'added' : part.removed ? 'removed' : 'same';
    for (const text of part.value.replace(/\n$/, '').split('\n')) {
      all.push({ kind, text, before: kind === 'added' ? null : ++a, after: kind === 'removed' ? null : ++b });
    }
  }
  return fold(all);
}

const ended = (text: string) => (text === '' || text.endsWith('\n') ? text : `${text}\n`);

function fold(all: Exclude<DiffLine, { kind: 'fold' }>[]): DiffLine[] {
  const near = new Array<boolean>(all.length).fill(false);
  all.forEach((line, i) => {
    if (line.kind !== 'same') {
      near.fill(true, Math.max(0, i - CONTEXT), Math.min(all.length, i + CONTEXT + 1));
    }
  });
  const out: DiffLine[] = [];
  all.forEach((line, i) => {
    const last = out[out.length - 1];
    if (near[i]) {
      out.push(line);
    } else if (last?.kind === 'fold') {
      last.count += 1;
    } else {
      out.push({ kind: 'fold', count: 1 });
    }
  });
  return out;
}
