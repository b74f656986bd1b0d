// The marks of the tree, drawn the same on the tree, the charts and the legend.

import { maker, type Shape } from '../core/palette';
import type { Outcome } from '../core/verdict';
import type { Theme } from './canvas';

export function tracePath(ctx: CanvasRenderingContext2D, shape: Shape, x: number, y: number, r: number): void {
  ctx.beginPath();
  if (shape === 'circle') {
    ctx.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  const corners = { diamond: 4, square: 4, triangle: 3, hexagon: 6 }[shape];
  const turn = { diamond: 0, square: Math.PI / 4, triangle: -Math.PI / 2, hexagon: 0 }[shape];
  // Equal areas, so that no maker looks more important than another.
  const radius = r * { diamond: 1.25, square: 1.25, triangle: 1.4, hexagon: 1.1 }[shape];
  for (let i = 0; i < corners; i++) {
    const angle = turn + (i * 2 * Math.PI) / corners;
    const [px, py] = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)];
    if (i) {
      ctx.lineTo(px, py);
    } else {
      ctx.moveTo(px, py);
    }
  }
  ctx.closePath();
}

/** Outline: who made it. Fill: what the judge said. */
export function drawGlyph(
  ctx: CanvasRenderingContext2D,
  theme: Theme,
  proposer: string,
  result: Outcome,
  x: number,
  y: number,
  r: number,
  strength = 1
): void {
  const { shape, colour } = maker(proposer);
  const outline = theme.get(colour);
  tracePath(ctx, shape, x, y, r);
  ctx.fillStyle = theme.get('--kf-bg');
  ctx.fill();
  ctx.lineWidth = 1.8;
  ctx.strokeStyle = outline;
  if (result === 'failed') {
    ctx.globalAlpha = 0.75 * strength;
    ctx.stroke();
    ctx.beginPath();
    const d = r * 0.42;
    ctx.moveTo(x - d, y - d);
    ctx.lineTo(x + d, y + d);
    ctx.moveTo(x + d, y - d);
    ctx.lineTo(x - d, y + d);
    ctx.strokeStyle = theme.get('--kf-bad');
    ctx.lineWidth = 1.5;
    ctx.stroke();
    ctx.globalAlpha = 1;
    return;
  }
  if (result === 'pending') {
    ctx.globalAlpha = strength;
    ctx.setLineDash([2.5, 2.5]);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
    return;
  }
  ctx.fillStyle = result === 'faster' ? theme.get('--kf-good') : outline;
  ctx.globalAlpha = strength * (result === 'faster' ? 1 : result === 'stock' ? 0.55 : 0.22);
  ctx.fill();
  ctx.globalAlpha = strength;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** A person's mark: a dashed ring where the search is held, a bar where it may not go on. */
export function drawMark(ctx: CanvasRenderingContext2D, theme: Theme, mark: string, x: number, y: number, r: number): void {
  ctx.strokeStyle = theme.get('--kf-human');
  ctx.lineWidth = 2;
  ctx.beginPath();
  if (mark === 'pinned') {
    ctx.setLineDash([3, 2]);
    ctx.arc(x, y, r + 3.5, 0, 2 * Math.PI);
  } else {
    ctx.moveTo(x - r - 3, y + r + 4);
    ctx.lineTo(x + r + 3, y + r + 4);
  }
  ctx.stroke();
  ctx.setLineDash([]);
}

export function drawStar(ctx: CanvasRenderingContext2D, theme: Theme, x: number, y: number, r: number): void {
  ctx.beginPath();
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? r * 0.45 : r;
    const angle = -Math.PI / 2 + (i * Math.PI) / 5;
    ctx.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  ctx.closePath();
  ctx.fillStyle = theme.get('--kf-star');
  ctx.strokeStyle = theme.get('--kf-bg');
  ctx.lineWidth = 2;
  ctx.stroke();
  ctx.fill();
}
