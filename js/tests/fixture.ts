import { readFileSync } from 'node:fs';
import type { RunEvent } from '../core/protocol';
import { RunStore } from '../core/store';

interface Fixture {
  events: RunEvent[];
  expected: {
    state: string;
    judged: number;
    nodes: number;
    estimate: number;
    regions: Record<string, [string, number | null, number]>;
    progress: [number, number, number, number, number | null][];
  };
}

/** Written by tests/notebook/test_events_fixture.py and checked there against events.py. */
export const fixture = JSON.parse(readFileSync('tests/notebook/events.json', 'utf8')) as Fixture;

export function finishedStore(): RunStore {
  const store = new RunStore();
  store.apply({ from: 0, to: fixture.events.length, events: fixture.events });
  return store;
}
