// A canvas that follows its element's size, the device's pixels and the theme's colours.

import { frameScheduler } from './dom';

export interface Theme {
  get(name: string): string;
  font: string;
}

export interface Surface {
  canvas: HTMLCanvasElement;
  width: number;
  height: number;
  dirty: () => void;
  dispose: () => void;
}

type Draw = (ctx: CanvasRenderingContext2D, width: number, height: number, theme: Theme) => void;

export function surface(host: HTMLElement, canvas: HTMLCanvasElement, draw: Draw): Surface {
  let visible = true;
  const out: Surface = { canvas, width: 0, height: 0, dirty: () => undefined, dispose: () => undefined };
  const paint = () => {
    const context = canvas.getContext('2d');
    if (!context || !visible || !out.width || !out.height) {
      return;
    }
    const scale = window.devicePixelRatio || 1;
    const [w, hgt] = [Math.round(out.width * scale), Math.round(out.height * scale)];
    if (canvas.width !== w || canvas.height !== hgt) {
      canvas.width = w;
      canvas.height = hgt;
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, out.width, out.height);
    draw(context, out.width, out.height, readTheme(host));
  };
  const scheduler = frameScheduler(paint);
  out.dirty = scheduler.dirty;
  const stops: (() => void)[] = [scheduler.cancel];
  const measure = () => {
    out.width = host.clientWidth;
    out.height = host.clientHeight;
    scheduler.dirty();
  };
  if (typeof ResizeObserver !== 'undefined') {
    const observer = new ResizeObserver(measure);
    observer.observe(host);
    stops.push(() => observer.disconnect());
  }
  if (typeof IntersectionObserver !== 'undefined') {
    const observer = new IntersectionObserver(entries => {
      visible = entries[entries.length - 1].isIntersecting;
      scheduler.dirty();
    });
    observer.observe(host);
    stops.push(() => observer.disconnect());
  }
  stops.push(onThemeChange(scheduler.dirty));
  measure();
  out.dispose = () => stops.forEach(stop => stop());
  return out;
}

function readTheme(element: HTMLElement): Theme {
  const style = getComputedStyle(element);
  const cache = new Map<string, string>();
  return {
    get(name: string) {
      let value = cache.get(name);
      if (value === undefined) {
        value = style.getPropertyValue(name).trim() || '#888';
        cache.set(name, value);
      }
      return value;
    },
    font: style.fontFamily || 'sans-serif'
  };
}

/** JupyterLab switches themes by body attributes and variables, a plain page by the media query. */
function onThemeChange(changed: () => void): () => void {
  const later = () => {
    changed();
    // JupyterLab loads the new theme's style sheet after it set the attribute.
    setTimeout(changed, 300);
  };
  const observer = new MutationObserver(later);
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ['data-jp-theme-light', 'data-jp-theme-name', 'class', 'style']
  });
  const media = window.matchMedia?.('(prefers-color-scheme: dark)');
  media?.addEventListener?.('change', later);
  return () => {
    observer.disconnect();
    media?.removeEventListener?.('change', later);
  };
}
