// Where the time goes: every region and library op with its share, what is gained and what is possible.

import { micros, percent, ratio } from '../core/format';
import { rankedRegions, type RegionView, type RunStore } from '../core/store';
import { button, type Controls } from './controls';
import { h, replace, setText } from './dom';

interface Row {
  element: HTMLElement;
  title: HTMLElement;
  detail: HTMLElement;
  share: HTMLElement;
  gained: HTMLElement;
  possible: HTMLElement;
  mark: HTMLElement;
}

export function regionTable(store: RunStore, controls: Controls | null = null): { element: HTMLElement; update: () => void } {
  const rows = new Map<string, Row>();
  const list = h('div', { class: 'kf-region-list', attrs: { role: 'listbox', 'aria-label': 'regions by share of the step', tabindex: 0 } });
  const ceiling = h('span', 'kf-note');
  const legend = h(
    'div',
    'kf-legend',
    h('span', {}, h('span', 'kf-key kf-key-gained'), ' gained'),
    h('span', {}, h('span', 'kf-key kf-key-possible'), ' still possible'),
    h('span', {}, h('span', 'kf-key'), ' at the roof')
  );
  const notes = h('div', 'kf-capture-notes');
  const toggle = button('Off', '', () => switchSelected());
  const element = h('section', 'kf-regions', h('h3', 'kf-h', 'Regions ', ceiling, h('span', 'kf-tools', toggle)), list, notes, legend);
  const empty = h('p', 'kf-empty', 'Capturing the model and measuring where its time goes.');
  let built: unknown = null;

  const selected = () => store.run.regions.get(store.selection.region ?? '');
  /** A region that is searched or waits can be switched off, one that is through can be taken up again. */
  const canSwitch = (region: RegionView | undefined) =>
    region && controls && store.live && region.info.eligible && region.state !== 'ineligible' ? (isActive(region) ? 'off' : 'on') : null;
  function switchSelected(): void {
    const region = selected();
    const to = canSwitch(region);
    if (region && to) {
      store.setAnswer(null);
      controls?.send('switch', { arguments: { region: region.info.hash, on: to === 'on' } });
    }
  }

  list.addEventListener('keydown', event => {
    if ((event as KeyboardEvent).key === ' ') {
      event.preventDefault();
      switchSelected();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[(event as KeyboardEvent).key];
    if (!step) {
      return;
    }
    event.preventDefault();
    const ranked = rankedRegions(store.run);
    const at = ranked.findIndex(r => r.info.hash === store.selection.region);
    const to = ranked[Math.min(ranked.length - 1, Math.max(0, at + step))];
    if (to) {
      store.selectRegion(to.info.hash);
      rows.get(to.info.hash)?.element.scrollIntoView?.({ block: 'nearest' });
    }
  });

  const build = () => {
    rows.clear();
    list.replaceChildren();
    notes.replaceChildren();
    const started = store.run.started;
    if (!started) {
      replace(notes, empty);
      return;
    }
    const ranked = rankedRegions(store.run);
    const vendor = [...started.vendor].sort((a, b) => b.share - a.share);
    const known = ranked.reduce((s, r) => s + r.info.share, 0) + vendor.reduce((s, v) => s + v.share, 0);
    const widest = Math.max(1e-9, 1 - known, ...ranked.map(r => r.info.share), ...vendor.map(v => v.share));
    for (const region of ranked) {
      const row = regionRow(region, widest, () => store.selectRegion(region.info.hash));
      rows.set(region.info.hash, row);
      list.append(row.element);
    }
    for (const op of vendor) {
      list.append(quietRow(op.name, op.count, op.share, widest, 'stays on the library'));
    }
    if (1 - known > 0.005) {
      list.append(quietRow('everything else', 1, 1 - known, widest, 'views, Python, gaps between kernels'));
    }
    for (const reason of started.uncaptured) {
      notes.append(h('p', 'kf-empty', `About the capture: ${reason}`));
    }
  };

  const update = () => {
    const run = store.run;
    if (built !== run.started || !(list.childElementCount || notes.childElementCount)) {
      built = run.started;
      build();
    }
    const to = canSwitch(selected());
    toggle.hidden = to === null;
    setText(toggle, to === 'on' ? 'Search again' : 'Switch off');
    toggle.title = to === 'on' ? 'search the selected region (again)' : 'spend no more on the selected region';
    setText(ceiling, run.started ? `ceiling ${ratio(run.started.ceiling)}` : '');
    for (const region of run.regions.values()) {
      const row = rows.get(region.info.hash);
      if (row) {
        updateRow(row, region, store.selection.region === region.info.hash);
      }
    }
  };
  return { element, update };
}

function isActive(region: RegionView): boolean {
  return region.state === 'searching' || region.state === 'waiting';
}

function regionRow(region: RegionView, widest: number, select: () => void): Row {
  const info = region.info;
  const gained = h('span', 'kf-share-gained');
  const possible = h('span', 'kf-share-possible');
  const share = h('span', { class: 'kf-share', style: { width: `${(100 * info.share) / widest}%` } }, gained, possible);
  const mark = h('span', { class: 'kf-mark', attrs: { 'aria-hidden': 'true' } });
  const title = h('span', 'kf-region-title', info.title);
  const detail = h('div', 'kf-region-detail');
  const element = h(
    'div',
    { class: 'kf-region', attrs: { role: 'option', 'data-region': info.hash }, on: { click: select } },
    h('div', 'kf-region-line', mark, title, h('span', 'kf-count', `×${info.count}`), h('span', 'kf-percent', percent(info.share))),
    h('div', 'kf-share-track', share),
    detail
  );
  return { element, title, detail, share, gained, possible, mark };
}

function updateRow(row: Row, region: RegionView, selected: boolean): void {
  const won = region.speedup !== null && region.speedup > 1 ? 1 - 1 / region.speedup : 0;
  const open = region.info.eligible && region.state !== 'ineligible';
  const most = open && region.info.ceiling > 1 ? 1 - 1 / region.info.ceiling : 0;
  row.gained.style.setProperty('width', `${100 * won}%`);
  row.possible.style.setProperty('width', `${100 * Math.max(0, most - won)}%`);
  row.possible.hidden = most - won < 0.01;
  row.element.setAttribute('aria-selected', String(selected));
  row.element.dataset.state = region.state;
  setText(row.mark, { searching: '▸', done: '✓', waiting: '·', off: '–', ineligible: '–' }[region.state] ?? '·');
  setText(row.detail, describe(region));
  row.element.title = hint(region);
}

function describe(region: RegionView): string {
  if (!region.info.eligible || region.state === 'ineligible' || region.state === 'off') {
    return region.reason || region.state;
  }
  const ceiling = ratio(region.info.ceiling);
  const tried = region.correct + region.failed;
  const head = region.speedup !== null ? `${ratio(region.speedup)} of ${ceiling} possible` : `${tried ? 'no gain yet, ' : ''}${ceiling} possible`;
  return tried ? `${head} · ${tried} tried` : head;
}

function hint(region: RegionView): string {
  const info = region.info;
  const lines = [`${info.title} ×${info.count}`, `${micros(info.time_us)} each, ${micros(info.floor_us)} at the roof`];
  const shapes = `${info.inputs.join(', ')} → ${info.outputs.join(', ')}`;
  return [...lines, shapes, region.state, region.reason].filter(Boolean).join('\n');
}

function quietRow(name: string, count: number, share: number, widest: number, why: string): HTMLElement {
  return h(
    'div',
    { class: 'kf-region kf-vendor', title: why, attrs: { role: 'option', 'aria-disabled': 'true' } },
    h('div', 'kf-region-line', h('span', 'kf-mark', '—'), h('span', 'kf-region-title', name), h('span', 'kf-count', count > 1 ? `×${count}` : ''), h('span', 'kf-percent', percent(share))),
    h('div', 'kf-share-track', h('span', { class: 'kf-share', style: { width: `${(100 * share) / widest}%` } }))
  );
}
