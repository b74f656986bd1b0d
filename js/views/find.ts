// Search and filter of the tree, and the kernels found as a list with the reason of every failure.

import { EVERYTHING, found, isEverything, KINDS, type Filter, type Kind } from '../core/filter';
import { maker } from '../core/palette';
import type { RunStore, TreeNode } from '../core/store';
import { outcome, sentence } from '../core/verdict';
import { h, replace, setText } from './dom';

const LISTED = 200;

export interface Finder {
  bar: HTMLElement;
  list: HTMLElement;
  filter: () => Filter;
  isListing: () => boolean;
  update: () => void;
}

export function finder(store: RunStore, changed: () => void): Finder {
  let filter: Filter = EVERYTHING;
  let listing = false;
  let drawn = '';
  const words = h('input', { class: 'kf-input kf-find-words', attrs: { type: 'search', placeholder: 'find kernels', 'aria-label': 'find kernels by words or #number' } });
  const kind = h('select', { class: 'kf-input', attrs: { 'aria-label': 'which kernels to show' } }, ...KINDS.map(k => h('option', { attrs: { value: k } }, k)));
  const count = h('span', { class: 'kf-note', attrs: { 'aria-live': 'polite' } });
  const toggle = h('button', { class: 'kf-link', attrs: { type: 'button', 'aria-pressed': 'false' }, on: { click: () => show(!listing) } }, 'list');
  const bar = h('div', { class: 'kf-find', attrs: { role: 'search' } }, words, kind, count, toggle);
  const list = h('div', { class: 'kf-found', attrs: { role: 'listbox', 'aria-label': 'kernels found', tabindex: 0 } });
  list.hidden = true;

  function show(on: boolean): void {
    listing = on;
    toggle.setAttribute('aria-pressed', String(on));
    list.hidden = !on;
    drawn = '';
    changed();
  }

  const search = () => {
    filter = { kind: kind.value as Kind, words: words.value };
    changed();
  };
  words.addEventListener('input', search);
  kind.addEventListener('change', search);
  words.addEventListener('keydown', event => {
    if (event.key === 'Enter') {
      step(1);
    } else if (event.key === 'Escape' && words.value) {
      words.value = '';
      search();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener('keydown', event => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      step(by);
      event.preventDefault();
      event.stopPropagation();
    }
  });

  /** The next kernel found, from the selected one on. */
  function step(by: number): void {
    const nodes = hits();
    const at = nodes.findIndex(n => n.id === store.selection.node);
    const to = nodes[at < 0 ? 0 : (at + by + nodes.length) % nodes.length];
    if (to) {
      store.selectNode(to.id);
    }
  }

  const hits = () => found(store.run, store.selection.region ?? '', filter);

  function update(): void {
    const everything = isEverything(filter);
    if (everything && !listing) {
      setText(count, '');
      return;
    }
    const nodes = hits();
    setText(count, everything ? '' : `${nodes.length} found`);
    if (!listing) {
      return;
    }
    const key = [store.selection.region, store.selection.node, nodes.length, store.run.judged, filter.kind, filter.words].join('|');
    if (key === drawn) {
      return;
    }
    drawn = key;
    const at = list.scrollTop;
    const rows = nodes.slice(0, LISTED).map(row);
    replace(list, ...rows);
    if (!nodes.length) {
      replace(list, h('div', { class: 'kf-empty', attrs: { role: 'option', 'aria-disabled': 'true' } }, 'No kernel of this region fits.'));
    } else if (nodes.length > LISTED) {
      list.append(h('div', { class: 'kf-empty', attrs: { role: 'option', 'aria-disabled': 'true' } }, `and ${nodes.length - LISTED} older ones; narrow the search to see them`));
    }
    list.scrollTop = at;
  }

  function row(node: TreeNode): HTMLElement {
    const m = maker(node.proposer);
    const mark = { circle: '●', diamond: '◆', square: '■', triangle: '▲', hexagon: '⬢' }[m.shape];
    return h(
      'div',
      {
        class: 'kf-found-row',
        attrs: { role: 'option', 'aria-selected': String(node.id === store.selection.node), 'data-outcome': outcome(node.verdict), 'data-node': node.id },
        on: { click: () => store.selectNode(node.id) }
      },
      h('span', { class: 'kf-mark', style: { color: `var(${m.colour})` }, attrs: { 'aria-hidden': 'true' } }, mark),
      h('span', 'kf-found-id', `#${node.id}`),
      h('span', 'kf-found-text', h('span', {}, node.idea || node.strategy), h('span', 'kf-found-why', sentence(node.verdict)))
    );
  }

  return { bar, list, filter: () => filter, isListing: () => listing, update };
}
