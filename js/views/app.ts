// All views of one run over one store. Live widget, saved notebook and report differ only in `controls`.

import type { RunStore } from '../core/store';
import { frameScheduler, h, replace } from './dom';
import type { Controls, Want } from './controls';
import { header } from './header';
import { nodePanel } from './node';
import { progressChart } from './progress';
import { regionTable } from './regions';
import { roofline } from './roofline';
import { treeView } from './tree';

export interface AppOptions {
  controls?: Controls | null;
  want?: Want | null;
}

const GUARD_MS = 5000;

/** Mount the views into `el`; the result takes everything down again. */
export function mount(el: HTMLElement, store: RunStore, options: AppOptions = {}): () => void {
  const controls = options.controls ?? null;
  const regions = regionTable(store, controls);
  const head = header(store, controls);
  const tree = treeView(store);
  const node = nodePanel(store, options.want ?? null, controls);
  const roof = roofline(store);
  const progress = progressChart(store);
  const log = h('div', { class: 'kf-log', attrs: { role: 'log', 'aria-label': 'messages of the run' } });
  const root = h(
    'div',
    { class: 'kf-root', attrs: { role: 'region', 'aria-label': 'kernelforge run' } },
    h(
      'div',
      'kf-panel',
      head.element,
      h('div', 'kf-main', regions.element, tree.element, node.element),
      h('div', 'kf-charts', roof.element, progress.element),
      log
    )
  );
  el.append(root);

  let changes = new Set<string>();
  const draw = () => {
    const seen = changes;
    changes = new Set();
    const only = seen.size === 1 && seen.has('hover') ? 'hover' : seen.has('run') ? 'run' : 'selection';
    if (only !== 'hover') {
      head.update();
      regions.update();
      node.update();
      progress.update();
      drawLog();
    }
    tree.update(only);
    roof.update(only);
  };
  const drawLog = () => {
    const lines = store.run.logs.filter(l => l.level !== 'info').slice(-3).map(l => [l.level, `${l.level}: ${l.message}`]);
    if (store.answer) {
      lines.push(store.answer.error ? ['error', store.answer.error] : ['info', store.answer.text]);
    }
    const key = JSON.stringify(lines);
    if (log.dataset.key !== key) {
      log.dataset.key = key;
      replace(log, ...lines.map(([level, text]) => h('div', `kf-log-${level}`, text)));
    }
    log.hidden = !lines.length;
  };
  // Calls that installed kernels serve make no events of their own; somebody who looks wants to know.
  const guard = setInterval(() => {
    if (controls && store.live && store.run.guard && root.offsetParent !== null) {
      controls.send('guard_counts');
    }
  }, GUARD_MS);
  const scheduler = frameScheduler(draw);
  const unsubscribe = store.subscribe(change => {
    changes.add(change);
    scheduler.dirty();
  });
  changes.add('run');
  draw();
  return () => {
    unsubscribe();
    clearInterval(guard);
    scheduler.cancel();
    tree.dispose();
    roof.dispose();
    progress.dispose();
    root.remove();
  };
}
