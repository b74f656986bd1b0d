// The status-bar item: state, best and spent of the run that is going on, else of the newest.

import { Widget } from '@lumino/widgets';
import { usd } from '../core/format';
import { h, setText } from '../views/dom';
import { isRunning, stateOf, type RunList } from './runs';

/** A run that ended is news for this long. */
const NEWS_S = 3600;

export class StatusItem extends Widget {
  shown = true;
  private text = h('button', { class: 'kf-status', attrs: { type: 'button' }, title: 'show kernelforge runs' });
  private unwatch: () => void;

  constructor(
    private list: RunList,
    open: () => void
  ) {
    super();
    this.text.addEventListener('click', open);
    this.node.append(this.text);
    this.unwatch = list.watch(() => false, () => this.draw());
  }

  dispose(): void {
    this.unwatch();
    super.dispose();
  }

  draw(): void {
    const run = this.list.running ?? this.list.runs[0];
    const news = run && (isRunning(run) || Date.now() / 1000 - run.updated_at < NEWS_S);
    this.setHidden(!this.shown || !news);
    if (run) {
      setText(this.text, ['forge', stateOf(run), run.best, run.spent_usd > 0 ? usd(run.spent_usd) : ''].filter(Boolean).join(' · '));
    }
  }
}
