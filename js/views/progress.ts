// Best step so far against trials, time or dollars, up to the ceiling.

import { clock, ratio } from '../core/format';
import { linear, tickLabel } from '../core/scale';
import type { ProgressPoint, RunStore } from '../core/store';
import { drawAxes, MARGIN } from './axes';
import { surface } from './canvas';
import { h } from './dom';
import { emptyNote } from './roofline';

type Axis = 'trials' | 'time' | 'dollars';

export function progressChart(store: RunStore): { element: HTMLElement; update: () => void; dispose: () => void } {
  let axis: Axis = 'trials';
  const canvas = h('canvas', { attrs: { role: 'img', 'aria-label': 'best step so far against trials, time or dollars' } });
  const stage = h('div', 'kf-chart-stage', canvas);
  const pick = (['trials', 'time', 'dollars'] as Axis[]).map(name =>
    h(
      'button',
      {
        class: 'kf-link',
        attrs: { type: 'button' },
        on: {
          click: () => {
            axis = name;
            update();
          }
        }
      },
      name
    )
  );
  const element = h('section', 'kf-chart', h('h3', 'kf-h', 'Progress ', h('span', 'kf-tools', 'by ', ...pick)), stage);
  let points: { x: number; y: number; node: number | null }[] = [];

  const scene = surface(stage, canvas, (ctx, width, height, theme) => {
    const run = store.run;
    const m = run.meter;
    const value = (p: ProgressPoint) => (axis === 'trials' ? p.trial : axis === 'time' ? p.atS : p.usd);
    const now = axis === 'trials' ? run.judged : axis === 'time' ? (m?.elapsed_s ?? 0) : (m?.spent_usd ?? 0);
    const most = axis === 'trials' ? (m?.trials_max ?? 0) : axis === 'time' ? 0 : (m?.budget_usd ?? 0);
    const end = Math.max(now, run.progress.length ? value(run.progress[run.progress.length - 1]) : 0, most > 0 && most < now * 4 ? most : 0);
    if (!run.started || end <= 0) {
      emptyNote(ctx, theme, width, height, axis === 'dollars' ? 'Nothing has been spent.' : 'Appears with the first judged kernel.');
      points = [];
      return;
    }
    const ceiling = run.started.ceiling;
    const top = Math.max(1.05, ...run.progress.map(p => p.step), run.step?.high ?? 1, Math.min(ceiling, 3)) * 1.03;
    const low = Math.min(1, run.step?.low ?? 1) * 0.98;
    const x = linear([0, end], [MARGIN.left, width - MARGIN.right]);
    const y = linear([low, top], [height - MARGIN.bottom, MARGIN.top]);
    drawAxes(
      ctx,
      theme,
      width,
      height,
      { scale: x, title: { trials: 'kernels judged', time: 'time (min:s)', dollars: 'US dollars' }[axis], label: axis === 'time' ? clock : tickLabel },
      { scale: y, title: 'step speed-up', label: v => `${tickLabel(v)}×` }
    );
    if (ceiling < top * 1.001) {
      ctx.setLineDash([5, 4]);
      ctx.strokeStyle = theme.get('--kf-fg2');
      ctx.beginPath();
      ctx.moveTo(MARGIN.left, y(ceiling));
      ctx.lineTo(width - MARGIN.right, y(ceiling));
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.font = `10.5px ${theme.font}`;
      ctx.fillStyle = theme.get('--kf-fg2');
      ctx.textAlign = 'left';
      ctx.fillText(`ceiling ${ratio(ceiling)}`, MARGIN.left + 6, y(ceiling) - 4);
    }
    ctx.strokeStyle = theme.get('--kf-good');
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.moveTo(x(0), y(1));
    let best = 1;
    points = run.progress.map(p => ({ x: x(value(p)), y: y(p.step), node: p.node }));
    for (const p of run.progress) {
      ctx.lineTo(x(value(p)), y(best));
      ctx.lineTo(x(value(p)), y(p.step));
      best = p.step;
    }
    ctx.lineTo(x(now || end), y(best));
    ctx.stroke();
    ctx.fillStyle = theme.get('--kf-good');
    for (const p of points) {
      ctx.beginPath();
      ctx.arc(p.x, p.y, p.node !== null && p.node === store.selection.node ? 5 : 2.6, 0, 2 * Math.PI);
      ctx.fill();
    }
    const s = run.step;
    if (s) {
      const at = x(end) - 4;
      ctx.strokeStyle = theme.get('--kf-star');
      ctx.beginPath();
      ctx.moveTo(at, y(s.low));
      ctx.lineTo(at, y(s.high));
      ctx.stroke();
      ctx.fillStyle = theme.get('--kf-star');
      ctx.beginPath();
      ctx.arc(at, y(s.speedup), 4.5, 0, 2 * Math.PI);
      ctx.fill();
      ctx.fillStyle = theme.get('--kf-fg');
      ctx.font = `600 11px ${theme.font}`;
      ctx.textAlign = 'right';
      ctx.fillText(`measured ${ratio(s.speedup)}`, at - 9, y(s.speedup) + 4);
    }
  });

  canvas.addEventListener('click', event => {
    const box = canvas.getBoundingClientRect();
    const [mx, my] = [event.clientX - box.left, event.clientY - box.top];
    const near = points.map(p => ({ p, d: Math.hypot(p.x - mx, p.y - my) })).sort((a, b) => a.d - b.d)[0];
    if (near && near.d < 14 && near.p.node !== null) {
      store.selectNode(near.p.node);
    }
  });

  function update(): void {
    pick.forEach(b => b.setAttribute('aria-pressed', String(b.textContent === axis)));
    scene.dirty();
  }
  return { element, update, dispose: scene.dispose };
}
