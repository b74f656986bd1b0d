// Roofline: every correct kernel a dot under the roofs measured on this device, linked with the tree.

import { regionBytes, regionFlops, roofDots, type RoofDot } from '../core/roofline';
import { log, type Scale } from '../core/scale';
import { FINAL_STATES, type RunStore } from '../core/store';
import { outcome } from '../core/verdict';
import { drawAxes, MARGIN } from './axes';
import { surface, type Theme } from './canvas';
import { h } from './dom';
import { drawGlyph, drawStar } from './glyph';

const HIT_PX = 10;
const CELL_PX = 3;
/** From here on dots are thinned out and counted anew only twice a second. */
const MANY = 1000;
const RECOUNT_MS = 500;

export function roofline(store: RunStore): { element: HTMLElement; update: (change: string) => void; dispose: () => void } {
  const canvas = h('canvas', { attrs: { role: 'img', 'aria-label': 'roofline: arithmetic intensity against achieved rate, log–log' } });
  const stage = h('div', 'kf-chart-stage', canvas);
  const element = h('section', 'kf-chart', h('h3', 'kf-h', 'Roofline'), stage);
  let dots: RoofDot[] = [];
  let judged = -1;
  let counted = 0;
  let placed: { x: number; y: number; dot: RoofDot }[] = [];

  const scene = surface(stage, canvas, (ctx, width, height, theme) => {
    const roofs = store.run.started?.roofs ?? {};
    const [bandwidth, peak] = [roofs.bandwidth_gbps ?? 0, roofs.gflops ?? 0];
    if (!dots.length || !bandwidth || !peak) {
      emptyNote(ctx, theme, width, height, 'Appears with the first measured region.');
      return;
    }
    const ridge = peak / bandwidth;
    const xs = dots.map(d => d.intensity);
    const x = log([Math.min(...xs, ridge) / 2.5, Math.max(...xs, ridge) * 2.5], [MARGIN.left, width - MARGIN.right]);
    const lowest = Math.min(...dots.map(d => d.gflops), bandwidth * Math.min(...xs));
    const y = log([lowest / 2, peak * 1.8], [height - MARGIN.bottom, MARGIN.top]);
    drawAxes(ctx, theme, width, height, { scale: x, title: 'flop per byte' }, { scale: y, title: 'Gflop/s' });
    drawRoofs(ctx, theme, x, y, bandwidth, peak);
    placed = dots.map(dot => ({ x: x(dot.intensity), y: y(dot.gflops), dot }));
    // Of thousands of dots most lie on top of each other: one for each few pixels shows the same picture.
    const taken = new Set<number>();
    const { node: chosen, hover } = store.selection;
    for (const p of placed) {
      const cell = Math.round(p.x / CELL_PX) * 65536 + Math.round(p.y / CELL_PX) * 2 + Number(p.dot.region === store.selection.region);
      const special = p.dot.node === chosen || p.dot.node === hover || p.dot.node === store.run.regions.get(p.dot.region)?.best;
      if (placed.length < MANY || special || !taken.has(cell)) {
        taken.add(cell);
        drawDot(ctx, theme, p.x, p.y, p.dot);
      }
    }
  });

  function drawDot(ctx: CanvasRenderingContext2D, theme: Theme, x: number, y: number, dot: RoofDot): void {
    const node = dot.node === null ? undefined : store.run.nodes.get(dot.node);
    const { region, node: chosen, hover } = store.selection;
    ctx.globalAlpha = dot.region === region ? 1 : 0.35;
    const r = dot.region === region ? 4 : 3;
    ctx.save();
    if (node) {
      const alpha = ctx.globalAlpha;
      if (alpha === 1) {
        drawGlyph(ctx, theme, node.proposer, outcome(node.verdict), x, y, r);
      } else {
        ctx.fillStyle = theme.get('--kf-fg2');
        ctx.beginPath();
        ctx.arc(x, y, 2, 0, 2 * Math.PI);
        ctx.fill();
      }
      if (node.id === store.run.regions.get(dot.region)?.best && alpha === 1) {
        drawStar(ctx, theme, x, y, 6.5);
      }
      if (node.id === chosen || node.id === hover) {
        ctx.globalAlpha = 1;
        ctx.strokeStyle = theme.get('--kf-focus');
        ctx.lineWidth = 2;
        ctx.beginPath();
        ctx.arc(x, y, 8, 0, 2 * Math.PI);
        ctx.stroke();
      }
    } else {
      ctx.fillStyle = theme.get('--kf-stock');
      ctx.beginPath();
      ctx.arc(x, y, r, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.restore();
    ctx.globalAlpha = 1;
  }

  const nearest = (event: MouseEvent): RoofDot | null => {
    const box = canvas.getBoundingClientRect();
    const [mx, my] = [event.clientX - box.left, event.clientY - box.top];
    let best: RoofDot | null = null;
    let distance = HIT_PX * HIT_PX;
    for (const p of placed) {
      const d = (p.x - mx) ** 2 + (p.y - my) ** 2;
      if (d < distance) {
        distance = d;
        best = p.dot;
      }
    }
    return best;
  };
  canvas.addEventListener('mousemove', event => {
    const dot = nearest(event);
    const info = dot && store.run.regions.get(dot.region)?.info;
    canvas.title = dot && info ? `${info.title}\n${dot.node === null ? 'stock' : `#${dot.node}`} · ${dot.gflops.toPrecision(3)} Gflop/s · ${((1e3 * dot.gflops * regionBytes(info)) / regionFlops(info) / 1e3).toPrecision(3)} GB/s` : '';
    store.hover(dot?.node ?? null);
  });
  canvas.addEventListener('mouseleave', () => store.hover(null));
  canvas.addEventListener('click', event => {
    const dot = nearest(event);
    if (dot) {
      if (dot.node === null) {
        store.selectRegion(dot.region);
      } else {
        store.selectNode(dot.node);
      }
    }
  });

  return {
    element,
    update(change) {
      const due = dots.length < MANY || performance.now() - counted >= RECOUNT_MS || FINAL_STATES.has(store.run.state);
      if (change === 'run' && due && judged !== store.run.judged + (store.run.started ? 1 : 0)) {
        counted = performance.now();
        judged = store.run.judged + (store.run.started ? 1 : 0);
        dots = roofDots(store.run);
      } else if (change === 'run' && dots.length >= MANY) {
        return;
      }
      scene.dirty();
    },
    dispose: scene.dispose
  };
}

function drawRoofs(ctx: CanvasRenderingContext2D, theme: Theme, x: Scale, y: Scale, bandwidth: number, peak: number): void {
  const ridge = peak / bandwidth;
  const [x0, x1] = x.domain;
  ctx.save();
  ctx.strokeStyle = theme.get('--kf-fg');
  ctx.fillStyle = theme.get('--kf-fg2');
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  const start = Math.max(x0, y.domain[0] / bandwidth);
  ctx.moveTo(x(start), y(bandwidth * start));
  ctx.lineTo(x(ridge), y(peak));
  ctx.lineTo(x(x1), y(peak));
  ctx.stroke();
  ctx.font = `10.5px ${theme.font}`;
  ctx.textAlign = 'right';
  ctx.fillText(`${Math.round(peak)} Gflop/s`, x(x1), y(peak) - 4);
  const slope = Math.atan2(y(bandwidth * ridge) - y(bandwidth * start), x(ridge) - x(start));
  const mid = Math.sqrt(start * ridge);
  ctx.translate(x(mid), y(bandwidth * mid));
  ctx.rotate(slope);
  ctx.textAlign = 'center';
  ctx.fillText(`${bandwidth.toPrecision(3)} GB/s`, 0, -5);
  ctx.restore();
}

export function emptyNote(ctx: CanvasRenderingContext2D, theme: Theme, width: number, height: number, text: string): void {
  ctx.font = `12px ${theme.font}`;
  ctx.fillStyle = theme.get('--kf-fg2');
  ctx.textAlign = 'center';
  ctx.fillText(text, width / 2, height / 2);
}
