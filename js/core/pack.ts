// The run so far, small enough for a notebook: the twin of kernelforge_lab/notebook/wire.py.

import type { RunEvent, Saved } from './protocol';

/** As in bundle.py: room for the sources that won and some of the others. */
const SOURCE_CHARS = 150_000;

export function packed(events: readonly RunEvent[], to: number, best: ReadonlySet<number>): Saved {
  const lastMeter = events.reduce((at, event, i) => (event.kind === 'meter' ? i : at), -1);
  const fits = affordable(events, best);
  let spent: number | null = null;
  const out: RunEvent[] = [];
  events.forEach((event, i) => {
    if (event.kind === 'meter') {
      if (i !== lastMeter && event.spent_usd === spent) {
        return;
      }
      spent = event.spent_usd;
    } else if (event.kind === 'node_added' && event.source && !fits.has(event.source)) {
      out.push({ ...event, source: '', source_chars: event.source.length });
      return;
    } else if (event.kind === 'model_called' && event.prompt) {
      out.push({ ...event, prompt: '', reply: '', text_chars: event.prompt.length + event.reply.length });
      return;
    }
    out.push(event);
  });
  return { v: 1, from: 0, to, events: out };
}

function affordable(events: readonly RunEvent[], best: ReadonlySet<number>): Set<string> {
  const added = events.filter(e => e.kind === 'node_added').sort((a, b) => Number(best.has(b.node)) - Number(best.has(a.node)));
  const fits = new Set<string>();
  let room = SOURCE_CHARS;
  for (const { source } of added) {
    if (!fits.has(source) && source.length <= room) {
      fits.add(source);
      room -= source.length;
    }
  }
  return fits;
}
