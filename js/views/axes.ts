// Frame, ticks and titles shared by the two small charts.

import { tickLabel, type Scale } from '../core/scale';
import type { Theme } from './canvas';

export const MARGIN = { left: 54, right: 14, top: 12, bottom: 34 };

interface Axis {
  scale: Scale;
  title: string;
  label?: (v: number) => string;
}

export function drawAxes(ctx: CanvasRenderingContext2D, theme: Theme, width: number, height: number, x: Axis, y: Axis): void {
  const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
  ctx.font = `10.5px ${theme.font}`;
  ctx.lineWidth = 1;
  ctx.fillStyle = theme.get('--kf-fg2');
  ctx.strokeStyle = theme.get('--kf-grid');
  ctx.beginPath();
  for (const tick of y.scale.ticks) {
    const at = Math.round(y.scale(tick)) + 0.5;
    ctx.moveTo(left, at);
    ctx.lineTo(right, at);
  }
  ctx.stroke();
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  for (const tick of y.scale.ticks) {
    ctx.fillText((y.label ?? tickLabel)(tick), left - 5, y.scale(tick));
  }
  ctx.textAlign = 'center';
  ctx.textBaseline = 'top';
  ctx.strokeStyle = theme.get('--kf-line');
  ctx.beginPath();
  ctx.moveTo(left, bottom + 0.5);
  ctx.lineTo(right, bottom + 0.5);
  for (const tick of x.scale.ticks) {
    const at = Math.round(x.scale(tick)) + 0.5;
    ctx.moveTo(at, bottom);
    ctx.lineTo(at, bottom + 3);
  }
  ctx.stroke();
  for (const tick of x.scale.ticks) {
    ctx.fillText((x.label ?? tickLabel)(tick), x.scale(tick), bottom + 5);
  }
  ctx.fillText(x.title, (left + right) / 2, bottom + 18);
  ctx.save();
  ctx.translate(11, (top + bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText(y.title, 0, -6);
  ctx.restore();
  ctx.textBaseline = 'alphabetic';
}
