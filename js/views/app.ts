// All views of one run over one store. Live widget, saved notebook and report differ only in `controls`.

import type { RunStore } from '../core/store';
import { frameScheduler, h, replace } from './dom';
import { header, type Controls } from './header';
import { nodePanel } from './node';
import { progressChart } from './progress';
import { regionTable } from './regions';
import { roofline } from './roofline';
import { treeView } from './tree';

export interface AppOptions {
  controls?: Controls | null;
  want?: ((node: number) => void) | null;
}

/** Mount the views into `el`; the result takes everything down again. */
export function mount(el: HTMLElement, store: RunStore, options: AppOptions = {}): () => void {
  const head = header(store, options.controls ?? null);
  const regions = regionTable(store);
  const tree = treeView(store);
  const node = nodePanel(store, options.want ?? null);
  const roof = roofline(store);
  const progress = progressChart(store);
  const log = h('div', 'kf-log');
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
    const lines = store.run.logs.filter(l => l.level !== 'info').slice(-3);
    const key = lines.map(l => l.seq).join();
    if (log.dataset.key !== key) {
      log.dataset.key = key;
      replace(log, ...lines.map(l => h('div', `kf-log-${l.level}`, `${l.level}: ${l.message}`)));
    }
    log.hidden = !lines.length;
  };
  const scheduler = frameScheduler(draw);
  const unsubscribe = store.subscribe(change => {
    changes.add(change);
    scheduler.dirty();
  });
  changes.add('run');
  draw();
  return () => {
    unsubscribe();
    scheduler.cancel();
    tree.dispose();
    roof.dispose();
    progress.dispose();
    root.remove();
  };
}
