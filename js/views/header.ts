// The first line: how far, how good, how much. And the three buttons.

import { clock, percent, ratio, ratioWithInterval, usd } from '../core/format';
import { estimatedStep, FINAL_STATES, fractionDone, type Run, type RunStore } from '../core/store';
import { h, setText } from './dom';

export interface Controls {
  send(kind: 'pause' | 'resume' | 'stop'): void;
}

const BUSY_HINT = 'If a cell is running, some front ends deliver this only when it yields.';

export function header(store: RunStore, controls: Controls | null): { element: HTMLElement; update: () => void } {
  const title = h('span', 'kf-title');
  const where = h('span', 'kf-where');
  const state = h('span', { class: 'kf-state', attrs: { role: 'status', 'aria-live': 'polite' } });
  const fill = h('span', 'kf-bar-fill');
  const bar = h('span', { class: 'kf-bar', attrs: { role: 'progressbar', 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-label': 'progress of the run' } }, fill);
  const far = h('span', 'kf-far');
  const best = h('strong', 'kf-best');
  const bestNote = h('span', 'kf-note');
  const spent = h('span', 'kf-spent');
  const note = h('div', 'kf-doing');
  const pause = h('button', { class: 'kf-button', title: BUSY_HINT, attrs: { type: 'button' } }, 'Pause');
  const stop = h('button', { class: 'kf-button', title: BUSY_HINT, attrs: { type: 'button' } }, 'Stop');
  pause.addEventListener('click', () => controls?.send(store.run.state === 'paused' ? 'resume' : 'pause'));
  stop.addEventListener('click', () => {
    controls?.send('stop');
    stop.disabled = true;
    setText(stop, 'Stopping');
  });
  const buttons = h('span', 'kf-buttons', pause, stop);
  const element = h(
    'header',
    'kf-header',
    h(
      'div',
      'kf-headline',
      h('span', 'kf-name', title, where),
      h('span', 'kf-how-far', state, bar, far),
      h('span', 'kf-how-good', best, bestNote),
      spent,
      buttons
    ),
    note
  );

  const update = () => {
    const run = store.run;
    const started = run.started;
    setText(title, started?.title ?? 'forge');
    setText(where, started ? [started.target, started.device].filter(Boolean).join(' · ') : '');
    where.title = where.textContent ?? '';
    const label = store.orphaned && !FINAL_STATES.has(run.state) ? 'kernel gone' : run.state;
    setText(state, label);
    state.dataset.state = store.orphaned && !FINAL_STATES.has(run.state) ? 'gone' : run.state;
    const fraction = fractionDone(run);
    fill.style.setProperty('width', `${100 * fraction}%`);
    bar.setAttribute('aria-valuenow', String(Math.round(100 * fraction)));
    bar.hidden = FINAL_STATES.has(run.state);
    setText(far, howFar(run));
    const [value, against] = howGood(run);
    setText(best, value);
    best.classList.toggle('kf-quiet', value === 'no gain yet' || value === 'no gain');
    setText(bestNote, against);
    setText(spent, howMuch(run));
    spent.hidden = !spent.textContent;
    buttons.hidden = !store.live || FINAL_STATES.has(run.state) || !controls;
    setText(pause, run.state === 'paused' ? 'Resume' : 'Pause');
    if (!stop.disabled) {
      setText(stop, 'Stop');
    }
    pause.disabled = run.state === 'stopping' || run.state === 'measuring';
    setText(note, noteLine(run));
    note.hidden = !note.textContent;
  };
  return { element, update };
}

function howFar(run: Run): string {
  const m = run.meter;
  if (!m) {
    return '';
  }
  const trials = m.trials_max > 0 ? `${m.trials}/${m.trials_max} trials` : `${m.trials} trials`;
  if (FINAL_STATES.has(run.state)) {
    return `${m.trials} trials in ${clock(m.elapsed_s)}`;
  }
  return m.eta_s === null ? `${trials} · ${clock(m.elapsed_s)} so far` : `${trials} · ETA ${clock(m.eta_s)}`;
}

/** Never a hopeful number: measured, or estimated from proven regions and said to be, or none. */
function howGood(run: Run): [string, string] {
  const step = run.step;
  if (step) {
    if (!step.installed) {
      return ['no gain', `step measured at ${ratioWithInterval(step.speedup, step.low, step.high)} of ${step.stock}, left unchanged`];
    }
    return [ratio(step.speedup), `step, against ${step.stock} (${step.low.toFixed(2)}–${step.high.toFixed(2)})`];
  }
  const estimate = estimatedStep(run);
  const ceiling = run.started ? `ceiling ${ratio(run.started.ceiling)}` : '';
  if (estimate > 1.0005) {
    return [`≈ ${ratio(estimate)}`, `step, from proven regions · ${ceiling}`];
  }
  return [FINAL_STATES.has(run.state) ? 'no gain' : 'no gain yet', ceiling];
}

function howMuch(run: Run): string {
  const m = run.meter;
  if (!m || (m.budget_usd <= 0 && m.spent_usd <= 0)) {
    return '';
  }
  return m.budget_usd > 0 ? `${usd(m.spent_usd)} / ${m.budget_usd.toFixed(2)}` : usd(m.spent_usd);
}

function noteLine(run: Run): string {
  const parts: string[] = [];
  if (run.step) {
    const s = run.step;
    const unit = (ms: number) => `${ms >= 100 ? ms.toFixed(0) : ms.toFixed(1)} ms`;
    parts.push(`${unit(s.stock_ms)} → ${unit(s.forged_ms)} per step`);
    parts.push(s.equal ? `outputs equal (error ${s.max_error.toPrecision(2)})` : 'outputs differ');
    if (s.message) {
      parts.push(s.message);
    }
  }
  if (run.guard) {
    const fallbacks = Object.entries(run.guard.fallbacks);
    parts.push(`guard: ${run.guard.hits} hits`);
    parts.push(fallbacks.length ? `fallbacks: ${fallbacks.map(([why, n]) => `${why} ${n}`).join(', ')}` : 'no fallbacks');
  }
  if (run.message) {
    parts.push(run.message);
  } else if (!FINAL_STATES.has(run.state) && run.meter?.doing) {
    parts.push(run.meter.doing);
  }
  if (!parts.length && run.started) {
    parts.push(run.started.advice || `one step takes ${run.started.step_ms.toPrecision(3)} ms, busy ${percent(run.started.busy)}`);
  }
  return parts.join(' · ');
}
