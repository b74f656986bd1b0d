// Two runs side by side: the answers first, then their regions matched by hash.

import { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { clock, percent, ratio, ratioWithInterval, usd } from '../core/format';
import { emptyRun, reduce, type RegionView, type Run } from '../core/store';
import { h, replace } from '../views/dom';
import type { RunsApi, StoredRun } from './api';

export function compareView(api: RunsApi, pair: StoredRun[]): MainAreaWidget {
  const content = new Widget();
  content.addClass('kf-compare');
  const place = h('div', 'kf-root', h('p', 'kf-empty', 'Reading both runs.'));
  content.node.append(place);
  const widget = new MainAreaWidget({ content });
  widget.id = `kernelforge-compare-${pair.map(r => r.id).join('-')}`;
  widget.title.label = 'Compare runs';
  widget.title.closable = true;
  void Promise.all(pair.map(async run => folded((await api.events(run.id)).events)))
    .then(runs => replace(place, comparison(pair, runs)))
    .catch(error => replace(place, h('p', 'kf-empty', String(error))));
  return widget;
}

function folded(events: Parameters<typeof reduce>[1][]): Run {
  const run = emptyRun();
  events.forEach(event => reduce(run, event));
  return run;
}

export function comparison(pair: StoredRun[], runs: Run[]): HTMLElement {
  const row = (name: string, value: (run: Run, i: number) => string) => h('tr', {}, h('th', { attrs: { scope: 'row' } }, name), ...runs.map((run, i) => h('td', {}, value(run, i))));
  const head = h('tr', {}, h('td', {}), ...pair.map(run => h('th', { attrs: { scope: 'col' } }, run.title, h('div', 'kf-note', run.id))));
  const hashes = new Map<string, RegionView>();
  for (const run of runs) {
    for (const region of run.regions.values()) {
      const known = hashes.get(region.info.hash);
      if (!known || known.info.share < region.info.share) {
        hashes.set(region.info.hash, region);
      }
    }
  }
  const regions = [...hashes.values()].sort((a, b) => b.info.share - a.info.share);
  return h(
    'div',
    'kf-panel',
    h('h2', 'kf-runs-title kf-compare-title', 'Two runs'),
    h(
      'table',
      'kf-facts kf-compare-table',
      h('thead', {}, head),
      h(
        'tbody',
        {},
        row('step', (run, i) => (run.step ? ratioWithInterval(run.step.speedup, run.step.low, run.step.high) : pair[i].best)),
        row('against', run => run.step?.stock ?? ''),
        row('ceiling', run => ratio(run.started?.ceiling)),
        row('device', run => `${run.started?.target ?? ''} ${run.started?.device ?? ''}`),
        row('proposers', run => run.started?.proposers.join(', ') ?? ''),
        row('kernels judged', run => String(run.judged)),
        row('time', run => (run.meter ? clock(run.meter.elapsed_s) : '')),
        row('money', run => usd(run.meter?.spent_usd ?? 0)),
        ...regions.map(region =>
          row(`${region.info.title} ×${region.info.count} (${percent(region.info.share)})`, run => {
            const mine = run.regions.get(region.info.hash);
            return !mine ? 'not in this run' : mine.speedup !== null ? ratioWithInterval(mine.speedup, mine.low, mine.high) : mine.reason || mine.state;
          })
        )
      )
    )
  );
}
