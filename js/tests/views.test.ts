import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { FromKernel, RunEvent, ToKernel } from '../core/protocol';
import { rankedRegions } from '../core/store';
import { mount } from '../views/app';
import makeWidget from '../widget/index';
import { finishedStore, fixture } from './fixture';

const EVIL = '<img src=x onerror="alert(1)">';

beforeEach(() => {
  document.body.replaceChildren();
  vi.stubGlobal('requestAnimationFrame', (f: () => void) => setTimeout(f, 0));
  vi.stubGlobal('matchMedia', () => ({ addEventListener: () => undefined, removeEventListener: () => undefined }));
  HTMLCanvasElement.prototype.getContext = (() => null) as never;
});

const frame = () => new Promise(done => setTimeout(done, 5));
const text = (selector: string) => document.querySelector(selector)?.textContent ?? '';

function show(store = finishedStore()) {
  const el = document.createElement('div');
  document.body.append(el);
  return { store, el, unmount: mount(el, store) };
}

describe('the panel', () => {
  it('answers the three questions in its first line', () => {
    show();
    expect(text('.kf-state')).toBe('finished');
    expect(text('.kf-far')).toContain('40 trials');
    expect(text('.kf-best')).toBe('1.34×');
    expect(text('.kf-spent')).toBe('$0.12 / 1.00');
  });

  it('lists regions and library ops whose shares add up to the whole step', () => {
    show();
    const shares = [...document.querySelectorAll('.kf-percent')].map(e => parseFloat(e.textContent ?? ''));
    expect(shares.reduce((a, b) => a + b)).toBeGreaterThan(96);
    expect(shares.reduce((a, b) => a + b)).toBeLessThan(104);
    expect(document.querySelectorAll('.kf-vendor').length).toBeGreaterThanOrEqual(3);
  });

  it('says there is no gain while nothing is proven', () => {
    const store = finishedStore();
    store.apply({ kind: 'reset', from: 0, to: 3, events: fixture.events.slice(0, 3) });
    show(store);
    expect(text('.kf-best')).toBe('no gain yet');
  });

  it('shows a node in sentence, source, diff and verdict', async () => {
    const { store } = show();
    const region = rankedRegions(store.run).find(r => r.best !== null)!;
    store.selectRegion(region.info.hash);
    await frame();
    expect(text('.kf-sentence')).toMatch(/^Faster: /);
    expect(text('.kf-code')).toContain('forge: target cpu');
    const tab = (name: string) => [...document.querySelectorAll<HTMLButtonElement>('.kf-tab')].find(b => b.textContent === name)!;
    tab('Verdict').click();
    expect(text('.kf-facts')).toContain('guard bands');
    tab('Diff').click();
    expect(text('.kf-against')).toContain('parent');
  });

  it('walks regions with the keyboard', async () => {
    const { store } = show();
    const ranked = rankedRegions(store.run);
    store.selectRegion(ranked[0].info.hash);
    document.querySelector('.kf-region-list')!.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }));
    await frame();
    expect(store.selection.region).toBe(ranked[1].info.hash);
    expect(document.querySelector('[aria-selected="true"][data-region]')?.getAttribute('data-region')).toBe(ranked[1].info.hash);
  });

  it('treats all text as text', async () => {
    const events = JSON.parse(JSON.stringify(fixture.events)) as RunEvent[];
    for (const event of events) {
      if (event.kind === 'node_added') {
        event.source = event.idea = EVIL;
      } else if (event.kind === 'run_started') {
        event.title = event.device = event.advice = EVIL;
        event.uncaptured = [EVIL];
        event.regions.forEach(r => (r.title = EVIL));
      } else if (event.kind === 'node_judged') {
        event.verdict.evidence = EVIL;
      }
    }
    const store = finishedStore();
    store.apply({ kind: 'reset', from: 0, to: events.length, events });
    show(store);
    for (const id of store.run.nodes.keys()) {
      store.selectNode(id);
      await frame();
    }
    expect(document.querySelector('img')).toBeNull();
    expect(document.body.textContent).toContain(EVIL);
  });

  it('leaves nothing behind when it is taken down', () => {
    const { el, unmount } = show();
    unmount();
    expect(el.childElementCount).toBe(0);
  });
});

class MockModel {
  sent: ToKernel[] = [];
  private handlers = new Map<string, ((m: unknown) => void)[]>();
  constructor(private traits: Record<string, unknown> = {}) {}
  get(name: string) {
    return this.traits[name];
  }
  set(name: string, value: unknown) {
    this.traits[name] = value;
    this.fire(`change:${name}`);
  }
  send(message: ToKernel) {
    this.sent.push(message);
  }
  on(name: string, handler: (m: unknown) => void) {
    this.handlers.set(name, [...(this.handlers.get(name) ?? []), handler]);
  }
  off() {}
  fire(name: string, message?: unknown) {
    this.handlers.get(name)?.forEach(handler => handler(message));
  }
  receive(message: FromKernel) {
    this.fire('msg:custom', message);
  }
}

function snapshot(count: number): DataView {
  const saved = { v: 1, from: 0, to: count, events: fixture.events.slice(0, count) };
  return new DataView(new TextEncoder().encode(JSON.stringify(saved)).buffer);
}

describe('the widget', () => {
  function start(model: MockModel, views = 1) {
    const widget = makeWidget();
    widget.initialize({ model: model as never });
    for (let i = 0; i < views; i++) {
      const el = document.createElement('div');
      document.body.append(el);
      widget.render({ model: model as never, el });
    }
  }

  it('starts from its snapshot and asks only for the rest', () => {
    const model = new MockModel({ snapshot: snapshot(50) });
    start(model);
    expect(model.sent[0]).toEqual({ v: 1, kind: 'hello', have: 50 });
    expect(document.querySelectorAll('.kf-region').length).toBeGreaterThan(5);
  });

  it('says hello a second time, through the subshell that exists by then', () => {
    vi.useFakeTimers();
    const model = new MockModel();
    start(model);
    vi.advanceTimersByTime(1500);
    vi.useRealTimers();
    expect(model.sent.map(m => m.kind)).toEqual(['hello', 'hello']);
  });

  it('asks again after a gap', async () => {
    const model = new MockModel({ snapshot: snapshot(10) });
    start(model);
    model.receive({ v: 1, kind: 'events', from: 20, to: 30, events: fixture.events.slice(20, 30) });
    expect(model.sent[1]).toEqual({ v: 1, kind: 'hello', have: 10 });
    model.receive({ v: 1, kind: 'events', from: 10, to: fixture.events.length, events: fixture.events.slice(10) });
    await frame();
    expect(text('.kf-state')).toBe('finished');
  });

  it('sends pause, resume and stop', async () => {
    const model = new MockModel({ snapshot: snapshot(60) });
    start(model);
    const [pause, stop] = document.querySelectorAll<HTMLButtonElement>('.kf-buttons button');
    pause.click();
    model.receive({ v: 1, kind: 'events', from: 60, to: 61, events: [{ kind: 'run_state', state: 'paused', message: '', seq: 61 }] });
    await frame();
    expect(pause.textContent).toBe('Resume');
    pause.click();
    stop.click();
    expect(model.sent.slice(1).map(m => m.kind)).toEqual(['pause', 'resume', 'stop']);
  });

  it('shows one run in two views', async () => {
    const model = new MockModel();
    start(model, 2);
    model.receive({ v: 1, kind: 'events', from: 0, to: fixture.events.length, events: fixture.events });
    await frame();
    expect([...document.querySelectorAll('.kf-state')].map(e => e.textContent)).toEqual(['finished', 'finished']);
  });

  it('fetches a source that was too long to send along', async () => {
    const events = JSON.parse(JSON.stringify(fixture.events)) as RunEvent[];
    for (const event of events) {
      if (event.kind === 'node_added' && event.source) {
        event.source_chars = event.source.length;
        event.source = '';
      }
    }
    const model = new MockModel();
    start(model);
    model.receive({ v: 1, kind: 'events', from: 0, to: events.length, events });
    await frame();
    const want = model.sent.find(m => m.kind === 'want');
    expect(want).toBeDefined();
    model.receive({ v: 1, kind: 'source', node: (want as { node: number }).node, source: '// here it is' });
    await frame();
    expect(text('.kf-code')).toContain('// here it is');
  });

  it('says when its kernel has gone and hides the buttons', async () => {
    const model = new MockModel({ snapshot: snapshot(60) });
    start(model);
    model.fire('comm_live_update');
    await frame();
    expect(text('.kf-state')).toBe('kernel gone');
    expect(document.querySelector<HTMLElement>('.kf-buttons')!.hidden).toBe(true);
  });
});
