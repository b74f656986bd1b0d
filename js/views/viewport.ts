// Pan and zoom of the tree: pointer, wheel, pinch. World to screen is x·k + tx.

export class Viewport {
  k = 1;
  tx = 0;
  ty = 0;
  /** False once the person moved the view: it then stays where they put it. */
  automatic = true;

  static readonly MIN = 0.04;
  static readonly MAX = 4;

  fit(bounds: { x0: number; y0: number; x1: number; y1: number }, width: number, height: number, pad = 30): void {
    const w = bounds.x1 - bounds.x0;
    const hgt = bounds.y1 - bounds.y0;
    const k = Math.min(1.25, (width - 2 * pad) / Math.max(w, 1), (height - 2 * pad) / Math.max(hgt, 1));
    this.k = Math.min(Viewport.MAX, Math.max(Viewport.MIN, k));
    this.tx = width / 2 - ((bounds.x0 + bounds.x1) / 2) * this.k;
    this.ty = Math.max(pad, (height - hgt * this.k) / 2) - bounds.y0 * this.k;
  }

  zoomAt(x: number, y: number, factor: number): void {
    const k = Math.min(Viewport.MAX, Math.max(Viewport.MIN, this.k * factor));
    this.tx = x - ((x - this.tx) * k) / this.k;
    this.ty = y - ((y - this.ty) * k) / this.k;
    this.k = k;
    this.automatic = false;
  }

  /** Move as little as needed to show a point. */
  reveal(x: number, y: number, width: number, height: number, pad = 40): void {
    const [sx, sy] = [x * this.k + this.tx, y * this.k + this.ty];
    this.tx += sx < pad ? pad - sx : sx > width - pad ? width - pad - sx : 0;
    this.ty += sy < pad ? pad - sy : sy > height - pad ? height - pad - sy : 0;
  }

  centre(x: number, y: number, width: number, height: number): void {
    this.tx = width / 2 - x * this.k;
    this.ty = height / 2 - y * this.k;
    this.automatic = false;
  }
}

interface Handlers {
  moved(): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  point(x: number, y: number): void;
  leave(): void;
}

const CLICK_SLOP_PX = 4;

/** Attach pointer handling. The wheel zooms only with ctrl/cmd or once the tree has the focus, so that a notebook scrolls past. */
export function attachViewport(canvas: HTMLElement, view: Viewport, on: Handlers): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  const at = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener('pointerdown', event => {
    pointers.set(event.pointerId, at(event));
    travelled = 0;
    canvas.setPointerCapture?.(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    const here = at(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      on.point(here.x, here.y);
      return;
    }
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const span = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      view.zoomAt((here.x + other.x) / 2, (here.y + other.y) / 2, span(here) / span(before));
    } else {
      view.tx += here.x - before.x;
      view.ty += here.y - before.y;
    }
    travelled += Math.hypot(here.x - before.x, here.y - before.y);
    if (travelled > CLICK_SLOP_PX) {
      view.automatic = false;
    }
    pointers.set(event.pointerId, here);
    on.moved();
  });
  const up = (event: PointerEvent) => {
    if (pointers.delete(event.pointerId) && event.type === 'pointerup' && travelled <= CLICK_SLOP_PX) {
      const here = at(event);
      on.click(here.x, here.y);
    }
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => on.leave());
  canvas.addEventListener('dblclick', event => {
    const here = at(event);
    on.doubleClick(here.x, here.y);
  });
  canvas.addEventListener(
    'wheel',
    event => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) {
        return;
      }
      event.preventDefault();
      const here = at(event);
      view.zoomAt(here.x, here.y, Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)));
      on.moved();
    },
    { passive: false }
  );
}
