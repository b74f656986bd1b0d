// Source with line numbers and colours, and the same as a diff.

import { lineDiff } from '../core/diff';
import { tokenLines } from '../core/highlight';
import { h } from './dom';

export function sourceView(source: string): HTMLElement {
  const rows = tokenLines(source.replace(/\n$/, '')).map((line, i) =>
    h('div', 'kf-code-line', h('span', { class: 'kf-lineno', attrs: { 'data-n': i + 1 } }), codeText(line))
  );
  return h('div', { class: 'kf-code', attrs: { tabindex: 0, role: 'region', 'aria-label': 'kernel source' } }, ...rows);
}

function codeText(line: ReturnType<typeof tokenLines>[number]): HTMLElement {
  return h('span', 'kf-code-text', ...line.map(t => (t.kind === 'plain' ? t.text : h('span', `kf-t-${t.kind}`, t.text))));
}

export function diffView(before: string, after: string): HTMLElement {
  const lines = lineDiff(before, after);
  const changed = lines.some(l => l.kind === 'added' || l.kind === 'removed');
  if (!changed) {
    return h('p', 'kf-empty', 'The source is the same; only the parameters differ.');
  }
  const rows = lines.map(line => {
    if (line.kind === 'fold') {
      return h('div', 'kf-fold', `⋯ ${line.count} unchanged line${line.count === 1 ? '' : 's'}`);
    }
    const sign = { same: ' ', added: '+', removed: '−' }[line.kind];
    return h(
      'div',
      `kf-code-line kf-${line.kind}`,
      h('span', { class: 'kf-lineno', attrs: { 'data-n': line.after ?? line.before ?? '' } }),
      h('span', 'kf-sign', sign),
      codeText(tokenLines(line.text)[0] ?? [])
    );
  });
  return h('div', { class: 'kf-code', attrs: { tabindex: 0, role: 'region', 'aria-label': 'difference of sources' } }, ...rows);
}
