// One kernel: the verdict as a sentence first, then its source, what changed, and the evidence.

import { micros } from '../core/format';
import { maker } from '../core/palette';
import { isStock, sourceOf, type RunStore, type TreeNode } from '../core/store';
import { outcome, sentence } from '../core/verdict';
import { nodeActions } from './actions';
import type { Controls, Want } from './controls';
import { h, replace, setText } from './dom';
import { costTable, promptView, stockTable, verdictTable } from './facts';
import { diffView, sourceView } from './source';

const TABS = ['Source', 'Diff', 'Verdict', 'Prompt', 'Cost'] as const;
type Tab = (typeof TABS)[number];
type Against = 'parent' | 'best' | 'stock';

export function nodePanel(store: RunStore, want: Want | null, controls: Controls | null = null): { element: HTMLElement; update: () => void } {
  let tab: Tab = 'Source';
  let against: Against = 'parent';
  let drawn = '';
  const asked = new Set<string>();
  const heading = h('span', 'kf-node-title');
  const mark = h('span', 'kf-node-mark');
  const verdict = h('p', 'kf-sentence');
  const idea = h('p', 'kf-idea');
  const copy = h('button', { class: 'kf-button kf-small', attrs: { type: 'button' }, title: 'copy the source', on: { click: copySource } }, 'Copy');
  const list = h('div', { class: 'kf-tablist', attrs: { role: 'tablist', 'aria-label': 'about this kernel' } });
  const tabs = h('div', 'kf-tabs', list, copy);
  const body = h('div', { class: 'kf-tab-body', attrs: { role: 'tabpanel', tabindex: 0, 'aria-label': 'the selected kernel' } });
  const buttons = TABS.map(name =>
    h('button', { class: 'kf-tab', attrs: { type: 'button', role: 'tab' }, on: { click: () => show(name) } }, name)
  );
  list.append(...buttons);
  tabs.addEventListener('keydown', event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[(event as KeyboardEvent).key];
    if (step) {
      const next = buttons[(buttons.findIndex(b => b.textContent === tab) + step + buttons.length) % buttons.length];
      show(next.textContent as Tab);
      next.focus();
      event.stopPropagation();
    }
  });
  const redraw = () => {
    drawn = '';
    update();
  };
  const actions = nodeActions(store, controls, redraw, () => {
    const node = selected();
    if (node) {
      tab = 'Source';
      actions.edit(node, sourceOf(store.run, node));
    }
  });
  const element = h('section', 'kf-node', h('h3', 'kf-h', mark, heading), verdict, idea, actions.element, tabs, body);

  function show(name: Tab): void {
    tab = name;
    redraw();
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
    const kernel = node !== undefined && !isStock(node);
    actions.update(node, kernel && source.length > 0);
    tabs.hidden = actions.isEditing();
    if (actions.isEditing()) {
      if (body.firstChild !== actions.editor) {
        replace(body, actions.editor);
        drawn = '';
      }
      return;
    }
    const texts = tab === 'Prompt' || tab === 'Cost' ? `${node?.calls.length} ${node?.calls[0]?.prompt.length} ${store.run.calls.length} ${store.run.judged}` : '';
    const key = [tab, texts, node?.mark, against, node?.id, node?.verdict?.status, node?.verdict?.timing?.kernel_us, source.length, region?.info.hash, region?.stockUs, region?.best].join('|');
    if (key === drawn) {
      return;
    }
    drawn = key;
    buttons[1].hidden = !kernel;
    buttons[3].hidden = !kernel || !node.calls.length;
    if (buttons.find(b => b.textContent === tab)?.hidden) {
      tab = 'Source';
      update();
      return;
    }
    copy.hidden = !kernel || tab !== 'Source';
    if (!node || isStock(node)) {
      showStock();
      return;
    }
    const m = maker(node.proposer);
    setText(mark, { circle: '●', diamond: '◆', square: '■', triangle: '▲', hexagon: '⬢' }[m.shape]);
    mark.style.setProperty('color', `var(${m.colour})`);
    setText(heading, `#${node.id} ${m.label}${node.mark ? ` · ${node.mark}` : ''}`);
    setText(verdict, sentence(node.verdict));
    verdict.dataset.outcome = outcome(node.verdict);
    setText(idea, [node.idea || node.strategy, paramText(node.params)].filter(Boolean).join(' · '));
    idea.hidden = !idea.textContent;
    if (tab === 'Verdict') {
      replace(body, verdictTable(node));
    } else if (tab === 'Prompt') {
      replace(body, promptView(node.calls) ?? fetching('calls', node.id, 'The prompts of this run are not kept in the notebook. The report has all of them.'));
    } else if (tab === 'Cost') {
      replace(body, costTable(store.run, node, region));
    } else if (!source && node.sourceChars > 0) {
      replace(body, fetching('source', node.sourceNode ?? node.id, 'This source was too long to keep in the notebook. The report has all of them.'));
    } else if (tab === 'Source') {
      replace(body, sourceView(source));
    } else {
      replace(body, ...diffBody(node, source));
    }
  }

  /** Ask a live kernel for what was left out, once; elsewhere say why it is not here. */
  function fetching(what: 'source' | 'calls', node: number, absent: string): HTMLElement {
    if (!want || !store.live) {
      return h('p', 'kf-empty', absent);
    }
    if (!asked.has(`${what} ${node}`)) {
      asked.add(`${what} ${node}`);
      want(what, node);
    }
    return h('p', 'kf-empty', what === 'source' ? 'Fetching the source.' : 'Fetching the prompts.');
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
      replace(body, stockTable(store.run, region));
    } else if (tab === 'Cost') {
      replace(body, costTable(store.run, undefined, region));
    } else {
      replace(body, sourceView(info.text));
    }
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
                redraw();
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
      fetching('source', otherNode.sourceNode ?? otherNode.id, '');
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
