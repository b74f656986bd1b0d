// The first line: how far, how good, how much. And the buttons.

import { clock, percent, ratio, ratioWithInterval, usd } from '../core/format';
import { allProven, estimatedStep, FINAL_STATES, fractionDone, type Run, type RunStore } from '../core/store';
import { button, numberField, type Controls } from './controls';
import { h, setText } from './dom';

/** Bubbles up to whoever knows another way to the kernel. */
export const STOP_EVENT = 'kernelforge-stop';

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
    stop.dispatchEvent(new CustomEvent(STOP_EVENT, { bubbles: true }));
    stop.disabled = true;
    setText(stop, 'Stopping');
  });
  const more = button('Budget…', 'let the search go on for longer', () => toggle(budget, more), false);
  const report = button('Report…', 'write a report beside the notebook', () => toggle(reports, report), false);
  const buttons = h('span', 'kf-buttons', pause, stop, more, report);
  const budget = budgetForm(store, controls);
  const reports = h(
    'div',
    { class: 'kf-form', attrs: { role: 'group', 'aria-label': 'write a report' } },
    ...Object.entries(REPORTS).map(([format, what]) =>
      button(`.${format}`, what, () => {
        controls?.send('report', { format });
        toggle(reports, report);
      })
    ),
    h('span', 'kf-note', 'into the folder the kernel works in')
  );
  budget.hidden = reports.hidden = true;
  for (const opener of [more, report]) {
    opener.setAttribute('aria-expanded', 'false');
  }
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
    budget,
    reports,
    note
  );

  const update = () => {
    const run = store.run;
    const started = run.started;
    setText(title, started?.title ?? 'forge');
    setText(where, started ? [started.target, started.device].filter(Boolean).join(' · ') : '');
    where.title = where.textContent ?? '';
    if (store.orphaned) {
      budget.hidden = reports.hidden = true;
    }
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
    const final = FINAL_STATES.has(run.state);
    buttons.hidden = !store.live || !controls;
    pause.hidden = stop.hidden = final;
    if (final) {
      // It may start again, with more budget.
      stop.disabled = false;
    }
    setText(pause, run.state === 'paused' ? 'Resume' : 'Pause');
    if (!stop.disabled) {
      setText(stop, 'Stop');
    }
    pause.disabled = run.state === 'stopping' || run.state === 'measuring';
    setText(note, store.orphaned ? goneLine(run) : noteLine(run));
    note.hidden = !note.textContent;
  };
  return { element, update };
}

const REPORTS = {
  html: 'a page to read and to send',
  ipynb: 'a notebook that judges the kernels again',
  md: 'text to paste'
};

function toggle(form: HTMLElement, opener: HTMLElement): void {
  form.hidden = !form.hidden;
  opener.setAttribute('aria-expanded', String(!form.hidden));
  if (!form.hidden) {
    form.querySelector<HTMLElement>('input, button')?.focus();
  }
}

/** Caps to raise; what is left empty stays. */
function budgetForm(store: RunStore, controls: Controls | null): HTMLElement {
  const fields = { trials: numberField('more kernels', '1'), minutes: numberField('more minutes', 'any'), usd: numberField('more dollars', 'any') };
  const give = h('button', { class: 'kf-button kf-small', attrs: { type: 'submit' } }, 'Add');
  const form = h('form', { class: 'kf-form', attrs: { 'aria-label': 'add budget' } }, ...Object.values(fields).map(f => f.element), give);
  form.addEventListener('submit', event => {
    event.preventDefault();
    const read = Object.entries(fields).map(([name, field]) => [name, field.read()] as const);
    const args = Object.fromEntries(read.filter(([, value]) => value > 0).map(([name, value]) => [name, name === 'trials' ? Math.round(value) : value]));
    if (Object.keys(args).length) {
      store.setAnswer(null);
      controls?.send('add_budget', { arguments: args });
      form.hidden = true;
    }
  });
  return form;
}

function goneLine(run: Run): string {
  const id = run.started?.run;
  const again = id ? `kernelforge_lab.load('${id}') shows it again` : 'kernelforge_lab.load() shows the newest stored run';
  return FINAL_STATES.has(run.state) ? `its kernel has gone · ${again}` : `the kernel that ran this has gone, and the search with it; what was found is stored · ${again}`;
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
    return [`≈ ${ratio(estimate)}`, `step, from ${allProven(run) ? 're-measured regions' : 'regions, not re-measured yet'} · ${ceiling}`];
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
