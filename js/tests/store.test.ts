import { describe, expect, it } from 'vitest';
import { STOCK, layoutRegion, neighbour } from '../core/layout';
import type { RunEvent } from '../core/protocol';
import { parseSpec, regionFlops, roofDots } from '../core/roofline';
import { emptyRun, estimatedStep, fractionDone, rankedRegions, reduce, RunStore, sourceOf } from '../core/store';
import { sentence } from '../core/verdict';
import { finishedStore, fixture } from './fixture';

const round = (x: number, places = 9) => Number(x.toFixed(places));

describe('the reducer', () => {
  it('makes of the events what Python makes of them', () => {
    const { run } = finishedStore();
    expect({
      state: run.state,
      judged: run.judged,
      nodes: run.nodes.size,
      estimate: round(estimatedStep(run)),
      regions: Object.fromEntries(rankedRegions(run).map(r => [r.info.hash, [r.state, r.best, round(r.speedup ?? 1)]])),
      progress: run.progress.map(p => [p.trial, round(p.atS, 6), p.usd, round(p.step), p.node])
    }).toEqual(fixture.expected);
  });

  it('is finished when the run is', () => {
    expect(fractionDone(finishedStore().run)).toBe(1);
  });

  it('takes a withdrawn best back', () => {
    const { run } = finishedStore();
    const won = rankedRegions(run).find(r => r.best !== null)!;
    reduce(run, { kind: 'region_state', region: won.info.hash, state: 'done', reason: '', best: null, speedup: null, low: null, high: null });
    expect(won.best).toBeNull();
    expect(run.progress[run.progress.length - 1].step).toBeLessThan(fixture.expected.estimate);
  });

  it('ignores events about what it does not know', () => {
    const run = emptyRun();
    reduce(run, { kind: 'node_judged', node: 9, region: 'x', verdict: {} as never, reward: 0 });
    reduce(run, { kind: 'somebody_newer' } as unknown as RunEvent);
    expect(run.nodes.size).toBe(0);
  });
});

describe('the store', () => {
  const all = fixture.events;
  const part = (from: number, to: number) => ({ from, to, events: all.slice(from, to) });

  it('reports a gap and is whole after the resend', () => {
    const store = new RunStore();
    expect(store.apply(part(0, 10))).toBe(true);
    expect(store.apply(part(12, 20))).toBe(false);
    expect(store.next).toBe(10);
    expect(store.apply(part(10, all.length))).toBe(true);
    expect(store.run.judged).toBe(fixture.expected.judged);
  });

  it('counts nothing twice when batches overlap', () => {
    const store = new RunStore();
    store.apply(part(0, 60));
    store.apply(part(30, 90));
    store.apply(part(0, all.length));
    expect(store.run.judged).toBe(fixture.expected.judged);
    expect(store.run.nodes.size).toBe(fixture.expected.nodes);
  });

  it('starts over on a reset', () => {
    const store = finishedStore();
    store.apply({ kind: 'reset', ...part(0, 3) });
    expect(store.run.nodes.size).toBe(0);
    expect(store.next).toBe(3);
  });

  it('follows the search until the person picks something', () => {
    const store = new RunStore();
    store.apply(part(0, 40));
    const followed = store.selection.region;
    expect(followed).not.toBeNull();
    const other = rankedRegions(store.run).find(r => r.info.hash !== followed)!;
    store.selectRegion(other.info.hash);
    store.apply(part(40, all.length));
    expect(store.selection.region).toBe(other.info.hash);
  });

  it('finds a source that was sent with an earlier node', () => {
    const store = finishedStore();
    const first = [...store.run.nodes.values()].find(n => n.source)!;
    const twin = { ...first, id: 9999, source: '', sourceNode: first.id };
    expect(sourceOf(store.run, twin)).toBe(first.source);
  });
});

describe('the layout', () => {
  const store = finishedStore();
  const region = rankedRegions(store.run)[0].info.hash;
  const layout = layoutRegion(store.run, region);

  it('has stock at the root and every kernel of the region once', () => {
    expect(store.run.nodes.get(layout.root)?.proposer).toBe('stock');
    expect(new Set(layout.nodes.map(n => n.id))).toEqual(new Set(store.run.regions.get(region)!.nodes));
  });

  it('puts no two nodes of a level on top of each other', () => {
    const seen = new Set(layout.nodes.map(n => `${n.depth}:${Math.round(n.x)}`));
    expect(seen.size).toBe(layout.nodes.length);
  });

  it('has a placeholder root before stock was measured', () => {
    expect(layoutRegion(emptyRun(), 'none').nodes.map(n => n.id)).toEqual([STOCK]);
  });

  it('walks with arrow keys and stops at the edges', () => {
    const child = neighbour(layout, layout.root, 'down');
    expect(neighbour(layout, child, 'up')).toBe(layout.root);
    expect(neighbour(layout, layout.root, 'up')).toBe(layout.root);
    let at = child;
    for (let i = 0; i < 1000; i++) {
      at = neighbour(layout, at, 'right');
    }
    expect(neighbour(layout, at, 'right')).toBe(at);
  });

  it('lays out 10,000 nodes, also in one long chain, without overflowing the stack', () => {
    const run = emptyRun();
    reduce(run, { ...(fixture.events.find(e => e.kind === 'run_started') as RunEvent) });
    const hash = [...run.regions.keys()][0];
    for (let i = 0; i < 10_000; i++) {
      const parent = i === 0 ? null : i < 3000 ? i - 1 : i % 300;
      reduce(run, { kind: 'node_added', node: i, region: hash, parent, proposer: i ? 'llm' : 'stock', strategy: '', idea: '', source: '', params: {} });
    }
    expect(layoutRegion(run, hash).nodes).toHaveLength(10_000);
  });
});

describe('the roofline', () => {
  it('reads specs as TensorSpec prints them', () => {
    expect(parseSpec('f32[2,3]')).toEqual({ numel: 6, bytes: 24 });
    expect(parseSpec('bf16[4,8;0,1]')).toEqual({ numel: 32, bytes: 16 });
    expect(parseSpec('i64[]')).toEqual({ numel: 1, bytes: 8 });
    expect(parseSpec('f32[2;1@7]')).toEqual({ numel: 2, bytes: 8 });
    expect(parseSpec('c64[2]')).toBeNull();
  });

  it('counts one flop per element and op, none for moving data', () => {
    const info = { ...finishedStore().run.started!.regions[0] };
    info.inputs = ['f32[4,8]'];
    info.text = 'region(in0: f32[4,8]) {\n  t0 = aten.exp.default(in0) : f32[4,8]\n  t1 = aten.view.default(t0) : f32[32]\n  t2 = aten.sum.dim(t1) : f32[]\n  return t2\n}';
    expect(regionFlops(info)).toBe(64);
  });

  it('has a dot for stock and for every correct kernel', () => {
    const { run } = finishedStore();
    const correct = [...run.nodes.values()].filter(n => n.proposer !== 'stock' && n.verdict?.timing).length;
    const dots = roofDots(run);
    expect(dots.filter(d => d.node !== null)).toHaveLength(correct);
    expect(dots.every(d => d.gflops > 0 && d.intensity > 0)).toBe(true);
  });
});

describe('the verdict sentence', () => {
  it('says against what', () => {
    const node = [...finishedStore().run.nodes.values()].find(n => n.verdict?.status === 'faster')!;
    expect(sentence(node.verdict)).toMatch(/^Faster: \d\.\d\d× \(.*\), .* against .* of compile\.$/);
  });

  it('leads with what is wrong', () => {
    const node = [...finishedStore().run.nodes.values()].find(n => n.verdict?.status === 'wrong');
    expect(sentence(node?.verdict)).toContain('Wrong result: out0[3, 17]');
  });
});
