// One kernel: the verdict as a sentence first, then its source, what changed, and the evidence.

import { digits, micros, ratio, ratioWithInterval } from '../core/format';
import { maker } from '../core/palette';
import { isStock, sourceOf, type RunStore, type TreeNode } from '../core/store';
import { checkCount, outcome, sentence } from '../core/verdict';
import { h, replace, setText } from './dom';
import { diffView, sourceView } from './source';

type Tab = 'Source' | 'Diff' | 'Verdict';
type Against = 'parent' | 'best' | 'stock';

export function nodePanel(store: RunStore, want: ((node: number) => void) | null): { element: HTMLElement; update: () => void } {
  let tab: Tab = 'Source';
  let against: Against = 'parent';
  let drawn = '';
  const asked = new Set<number>();
  const heading = h('span', 'kf-node-title');
  const mark = h('span', 'kf-node-mark');
  const verdict = h('p', 'kf-sentence');
  const idea = h('p', 'kf-idea');
  const copy = h('button', { class: 'kf-button kf-small', attrs: { type: 'button' }, title: 'copy the source', on: { click: copySource } }, 'Copy');
  const tabs = h('div', { class: 'kf-tabs', attrs: { role: 'tablist' } });
  const body = h('div', { class: 'kf-tab-body', attrs: { role: 'tabpanel' } });
  const buttons = (['Source', 'Diff', 'Verdict'] as Tab[]).map(name =>
    h('button', { class: 'kf-tab', attrs: { type: 'button', role: 'tab' }, on: { click: () => show(name) } }, name)
  );
  tabs.append(...buttons, copy);
  tabs.addEventListener('keydown', event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[(event as KeyboardEvent).key];
    if (step) {
      const next = buttons[(buttons.findIndex(b => b.textContent === tab) + step + buttons.length) % buttons.length];
      show(next.textContent as Tab);
      next.focus();
      event.stopPropagation();
    }
  });
  const element = h('section', 'kf-node', h('h3', 'kf-h', mark, heading), verdict, idea, tabs, body);

  function show(name: Tab): void {
    tab = name;
    drawn = '';
    update();
  }

  function copySource(): void {
    const node = selected();
    if (node) {
      void navigator.clipboard?.writeText(sourceOf(store.run, node)).then(() => {
        setText(copy, 'Copied');
        setTimeout(() => setText(copy, 'Copy'), 1200);
      });
    }
  }

  const selected = (): TreeNode | undefined =>
    store.selection.node === null ? undefined : store.run.nodes.get(store.selection.node);

  function update(): void {
    const node = selected();
    const region = store.run.regions.get(store.selection.region ?? '');
    for (const b of buttons) {
      const on = b.textContent === tab;
      b.setAttribute('aria-selected', String(on));
      b.tabIndex = on ? 0 : -1;
    }
    // Redraw only when what is shown changed: a selection in the source survives streaming.
    const source = node ? sourceOf(store.run, node) : '';
    const key = [tab, against, node?.id, node?.verdict?.status, node?.verdict?.timing?.kernel_us, source.length, region?.info.hash, region?.stockUs, region?.best].join('|');
    if (key === drawn) {
      return;
    }
    drawn = key;
    const kernel = node !== undefined && !isStock(node);
    buttons[1].hidden = !kernel;
    copy.hidden = !kernel || tab !== 'Source';
    if (!node || isStock(node)) {
      showStock();
      return;
    }
    const m = maker(node.proposer);
    setText(mark, { circle: '●', diamond: '◆', square: '■', triangle: '▲', hexagon: '⬢' }[m.shape]);
    mark.style.setProperty('color', `var(${m.colour})`);
    setText(heading, `#${node.id} ${m.label}`);
    setText(verdict, sentence(node.verdict));
    verdict.dataset.outcome = outcome(node.verdict);
    setText(idea, [node.idea || node.strategy, paramText(node.params)].filter(Boolean).join(' · '));
    idea.hidden = !idea.textContent;
    if (tab === 'Verdict') {
      replace(body, verdictTable(node));
    } else if (!source && node.sourceChars > 0) {
      fetchSource(node);
    } else if (tab === 'Source') {
      replace(body, sourceView(source));
    } else {
      replace(body, ...diffBody(node, source));
    }
  }

  function fetchSource(node: TreeNode): void {
    const owner = node.sourceNode ?? node.id;
    if (want && store.live) {
      replace(body, h('p', 'kf-empty', 'Fetching the source.'));
      if (!asked.has(owner)) {
        asked.add(owner);
        want(owner);
      }
    } else {
      replace(body, h('p', 'kf-empty', 'This source was too long to keep in the notebook. The report has all of them.'));
    }
  }

  function showStock(): void {
    const region = store.run.regions.get(store.selection.region ?? '');
    setText(mark, region ? '●' : '');
    mark.style.setProperty('color', 'var(--kf-stock)');
    setText(heading, region ? 'stock' : 'No kernel selected');
    verdict.dataset.outcome = 'stock';
    if (!region) {
      setText(verdict, 'Kernels appear in the tree as they are written. Click one to see its source and verdict.');
      idea.hidden = true;
      body.replaceChildren();
      return;
    }
    const info = region.info;
    const best = region.stockUs === null ? '' : ` Best stock: ${micros(region.stockUs)}.`;
    setText(verdict, `What PyTorch does today: ${micros(info.time_us)} per call inside the model, ${info.count} calls. The roof is ${micros(info.floor_us)}.${best}`);
    setText(idea, region.reason);
    idea.hidden = !region.reason;
    if (tab === 'Verdict') {
      replace(body, stockTable());
    } else {
      replace(body, sourceView(info.text));
    }
  }

  function stockTable(): HTMLElement {
    const region = store.run.regions.get(store.selection.region ?? '')!;
    const rows: [string, string][] = [];
    const judged = region.nodes.map(id => store.run.nodes.get(id)?.verdict).find(v => v && Object.keys(v.stocks_us).length);
    for (const [name, us] of Object.entries(judged?.stocks_us ?? {})) {
      rows.push([name, micros(us)]);
    }
    rows.push(['in the model', micros(region.info.time_us)], ['roof', micros(region.info.floor_us)]);
    region.info.inputs.forEach((spec, i) => rows.push([`in${i}`, spec]));
    region.info.outputs.forEach((spec, i) => rows.push([`out${i}`, spec]));
    return table(rows);
  }

  function diffBody(node: TreeNode, source: string): HTMLElement[] {
    const region = store.run.regions.get(node.region);
    const choose = h(
      'div',
      'kf-against',
      'against ',
      ...(['parent', 'best', 'stock'] as Against[]).map(name =>
        h(
          'button',
          {
            class: 'kf-link',
            attrs: { type: 'button', 'aria-pressed': String(name === against) },
            on: {
              click: () => {
                against = name;
                drawn = '';
                update();
              }
            }
          },
          name
        )
      )
    );
    const other = against === 'parent' ? node.parent : against === 'best' ? (region?.best ?? null) : null;
    const otherNode = other === null ? undefined : store.run.nodes.get(other);
    const before = otherNode && !isStock(otherNode) ? sourceOf(store.run, otherNode) : (region?.info.text ?? '');
    if (otherNode?.id === node.id) {
      return [choose, h('p', 'kf-empty', 'This is the best kernel.')];
    }
    if (otherNode && !isStock(otherNode) && !before && otherNode.sourceChars > 0) {
      want?.(otherNode.sourceNode ?? otherNode.id);
    }
    choose.append(otherNode && !isStock(otherNode) ? ` #${otherNode.id}` : ' the region as PyTorch runs it');
    return [choose, diffView(before, source)];
  }

  return { element, update };
}

function paramText(params: Record<string, number>): string {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

function verdictTable(node: TreeNode): HTMLElement {
  const v = node.verdict;
  if (!v) {
    return h('p', 'kf-empty', 'Not judged yet.');
  }
  const rows: [string, string][] = [];
  const t = v.timing;
  if (t) {
    rows.push(['kernel', micros(t.kernel_us)], [`best stock (${t.stock})`, micros(t.stock_us)]);
    rows.push(['speed-up', ratioWithInterval(t.speedup, t.low, t.high)], ['samples', String(t.samples)]);
  }
  for (const [name, us] of Object.entries(v.stocks_us)) {
    if (name !== t?.stock) {
      rows.push([name, `${micros(us)}${t ? ` · ${ratio(us / t.kernel_us)}` : ''}`]);
    }
  }
  rows.push(['checks', `${checkCount(v)} run`]);
  for (const [name, n] of Object.entries(v.checks)) {
    rows.push([`· ${name.replace(/_/g, ' ')}`, String(n)]);
  }
  if (v.max_error !== null) {
    rows.push(['largest error', `${digits(v.max_error)}× its bound`]);
  }
  for (const [name, value] of Object.entries(v.resources)) {
    rows.push([name.replace(/_/g, ' '), digits(value, 6).replace(/\.?0+$/, '') || '0']);
  }
  rows.push(['judged in', `${digits(v.seconds)} s`]);
  if (v.binary_hash) {
    rows.push(['binary', v.binary_hash.slice(0, 12)]);
  }
  const evidence = v.evidence ? h('pre', { class: 'kf-evidence', attrs: { tabindex: 0 } }, v.evidence) : null;
  return h('div', {}, evidence, table(rows));
}

function table(rows: [string, string][]): HTMLElement {
  return h('table', 'kf-facts', h('tbody', {}, ...rows.map(([name, value]) => h('tr', {}, h('th', { attrs: { scope: 'row' } }, name), h('td', {}, value)))));
}
