import { beforeEach, describe, expect, it, vi } from 'vitest';
import { found, matches } from '../core/filter';
import type { RunEvent } from '../core/protocol';
import { rankedRegions, type RunStore } from '../core/store';
import { mount } from '../views/app';
import { finishedStore, fixture } from './fixture';

beforeEach(() => {
  document.body.replaceChildren();
  vi.stubGlobal('requestAnimationFrame', (f: () => void) => setTimeout(f, 0));
  vi.stubGlobal('matchMedia', () => ({ addEventListener: () => undefined, removeEventListener: () => undefined }));
  HTMLCanvasElement.prototype.getContext = (() => null) as never;
});

const frame = () => new Promise(done => setTimeout(done, 5));
const text = (selector: string) => document.querySelector(selector)?.textContent ?? '';
const visible = (e: Element) => !e.closest('[hidden]');
const press = (label: string) => {
  const hit = [...document.querySelectorAll<HTMLButtonElement>('button')].find(b => b.textContent === label && visible(b));
  expect(hit, `a visible button ${label}`).toBeTruthy();
  hit!.click();
};
const field = (label: string) => document.querySelector<HTMLInputElement>(`[aria-label="${label}"]`)!;

function live(store: RunStore = finishedStore()) {
  store.live = true;
  const sent: [string, unknown][] = [];
  const wanted: [string, number][] = [];
  const el = document.createElement('div');
  document.body.append(el);
  const unmount = mount(el, store, {
    controls: { send: (kind, more) => sent.push([kind, more?.arguments ?? more?.format]) },
    want: (what, node) => wanted.push([what, node])
  });
  const best = rankedRegions(store.run).find(r => r.best !== null)!;
  store.selectNode(best.best);
  return { store, sent, wanted, unmount, best };
}

const add = (store: RunStore, ...events: object[]) =>
  store.apply({ from: store.next, to: store.next + events.length, events: events.map((e, i) => ({ seq: store.next + i + 1, ...e })) as RunEvent[] });

describe('steering', () => {
  it('offers nothing where no kernel listens', () => {
    const store = finishedStore();
    const el = document.createElement('div');
    document.body.append(el);
    mount(el, store);
    const labels = [...document.querySelectorAll('button')].filter(visible).map(b => b.textContent);
    expect(labels).not.toContain('Edit');
    expect(labels).not.toContain('Budget…');
    expect(labels).not.toContain('Switch off');
  });

  it('adds budget, also to a run that has ended', async () => {
    const { sent } = live();
    await frame();
    press('Budget…');
    field('more kernels').value = '20';
    field('more dollars').value = '0.5';
    press('Add');
    expect(sent).toEqual([['add_budget', { trials: 20, usd: 0.5 }]]);
    expect(visible(field('more kernels'))).toBe(false);
  });

  it('switches a region off and on with the keyboard too', async () => {
    const { store, sent, best } = live();
    await frame();
    press('Search again');
    add(store, { kind: 'region_state', region: best.info.hash, state: 'searching', reason: '', best: null, speedup: null, low: null, high: null });
    await frame();
    document.querySelector('.kf-region-list')!.dispatchEvent(new KeyboardEvent('keydown', { key: ' ' }));
    expect(sent).toEqual([
      ['switch', { region: best.info.hash, on: true }],
      ['switch', { region: best.info.hash, on: false }]
    ]);
  });

  it('pins, prunes and takes both back', async () => {
    const { store, sent, best } = live();
    const node = best.best!;
    await frame();
    press('Pin');
    add(store, { kind: 'node_marked', node, region: best.info.hash, mark: 'pinned' });
    await frame();
    expect(text('.kf-node-title')).toContain('pinned');
    press('Unpin');
    press('Prune');
    expect(sent).toEqual([
      ['pin', { node }],
      ['unmark', { node }],
      ['prune', { node }]
    ]);
  });

  it('continues from a node with a hint', async () => {
    const { sent, best } = live();
    await frame();
    press('Continue…');
    field('hint for the next kernel').value = 'keep the row in registers';
    press('Go');
    expect(sent).toEqual([['continue_from', { node: best.best, hint: 'keep the row in registers' }]]);
  });

  it('has an edited source judged and shows the new kernel', async () => {
    const { store, sent, best } = live();
    await frame();
    press('Edit');
    const editor = document.querySelector<HTMLTextAreaElement>('.kf-editor')!;
    expect(editor.value).toContain('forge: target cpu');
    editor.value += '\n// mine';
    // What streams in meanwhile must not take the text away.
    add(store, { kind: 'meter', trials: 41, trials_max: 60, elapsed_s: 1, limit_s: 9, eta_s: 1, spent_usd: 0, budget_usd: 0, doing: '' });
    await frame();
    expect(document.querySelector<HTMLTextAreaElement>('.kf-editor')!.value).toContain('// mine');
    press('Judge it');
    expect(sent[0]).toEqual(['submit', { source: editor.value, parent: best.best, idea: `edited from #${best.best}` }]);
    add(store, { kind: 'node_added', node: 5000, region: best.info.hash, parent: best.best, proposer: 'human', strategy: 'by hand', idea: '', source: editor.value, params: {} });
    await frame();
    expect(store.selection.node).toBe(5000);
    expect(document.querySelector('.kf-editor')).toBeNull();
  });

  it('keeps the text when the kernel refuses it, and says why', async () => {
    const { store } = live();
    await frame();
    press('Edit');
    press('Judge it');
    store.setAnswer({ v: 1, kind: 'answer', to: 'submit', error: 'This run has no search.', text: '' });
    await frame();
    expect(text('.kf-log')).toContain('This run has no search.');
    expect(document.querySelector('.kf-editor')).not.toBeNull();
    press('Cancel');
    await frame();
    expect(text('.kf-code')).toContain('forge: target cpu');
  });

  it('writes the reports a person can choose from', async () => {
    const { store, sent } = live();
    await frame();
    press('Report…');
    press('.ipynb');
    store.setAnswer({ v: 1, kind: 'answer', to: 'report', error: '', text: 'Report written to x.ipynb' });
    await frame();
    expect(sent).toEqual([['report', 'ipynb']]);
    expect(text('.kf-log')).toContain('x.ipynb');
  });
});

describe('prompts and costs', () => {
  const asked = (store: RunStore) => [...store.run.nodes.values()].find(n => n.calls.length)!;
  const tab = (name: string) => [...document.querySelectorAll<HTMLButtonElement>('.kf-tab')].find(b => b.textContent === name)!;

  it('shows prompt and reply word for word, and what they cost', async () => {
    const { store } = live();
    store.selectNode(asked(store).id);
    await frame();
    tab('Prompt').click();
    expect(text('.kf-call')).toContain('Write one file.');
    tab('Cost').click();
    expect(text('.kf-facts')).toMatch(/\$0\.0060 · 2,100 tokens in, 1,500 of them cached, 640 out/);
    expect(text('.kf-facts')).toContain('the run');
  });

  it('asks a live kernel for prompts that were left out, once', async () => {
    const { store, wanted } = live();
    const node = asked(store);
    const full = node.calls;
    node.calls = full.map(c => ({ ...c, prompt: '', reply: '', text_chars: 9000 }));
    store.selectNode(node.id);
    await frame();
    tab('Prompt').click();
    tab('Prompt').click();
    expect(wanted).toEqual([['calls', node.id]]);
    store.setCalls(node.id, full);
    await frame();
    expect(text('.kf-call')).toContain('Write one file.');
  });

  it('has no prompt tab where nobody was asked', async () => {
    const { store } = live();
    store.selectNode([...store.run.nodes.values()].find(n => n.proposer === 'templates')!.id);
    await frame();
    expect(tab('Prompt').hidden).toBe(true);
  });
});

describe('finding kernels', () => {
  const store = finishedStore();
  const region = rankedRegions(store.run)[0].info.hash;

  it('partitions kernels by verdict', () => {
    const count = (kind: 'all' | 'correct' | 'failed' | 'being judged') => found(store.run, region, { kind, words: '' }).length;
    expect(count('all')).toBeGreaterThan(5);
    expect(count('correct') + count('failed') + count('being judged')).toBe(count('all'));
  });

  it('finds words in ideas and evidence, and a number exactly', () => {
    const failed = [...store.run.nodes.values()].find(n => n.verdict?.status === 'compile_error')!;
    expect(matches(failed, { kind: 'all', words: 'undeclared ROWZ' })).toBe(true);
    expect(matches(failed, { kind: 'all', words: `#${failed.id}` })).toBe(true);
    expect(matches(failed, { kind: 'all', words: `#${failed.id}0` })).toBe(false);
    expect(matches(failed, { kind: 'faster', words: '' })).toBe(false);
  });

  it('lists every failure of the region with its reason', async () => {
    const { store } = live();
    store.selectRegion(region);
    await frame();
    const kind = document.querySelector<HTMLSelectElement>('[aria-label="which kernels to show"]')!;
    kind.value = 'failed';
    kind.dispatchEvent(new Event('change'));
    press('list');
    await frame();
    const rows = [...document.querySelectorAll('.kf-found-row')];
    expect(rows.length).toBe(store.run.regions.get(region)!.failed);
    expect(rows.every(r => r.querySelector('.kf-found-why')!.textContent!.length > 10)).toBe(true);
    (rows[0] as HTMLElement).click();
    expect(store.selection.node).toBe(Number((rows[0] as HTMLElement).dataset.node));
  });
});

describe('words about gains', () => {
  it('does not call a gain proven before its region was measured again', async () => {
    const store = finishedStore();
    const first = fixture.events.findIndex(e => e.kind === 'region_state' && e.speedup !== null && e.speedup > 1);
    store.apply({ kind: 'reset', from: 0, to: first + 1, events: fixture.events.slice(0, first + 1) });
    live(store);
    await frame();
    expect(text('.kf-how-good')).toContain('not re-measured yet');
  });
});
