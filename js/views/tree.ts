// The search tree of one region on a canvas: thousands of nodes, pan, zoom, keyboard, one hover line.

import { micros, ratio } from '../core/format';
import { layoutRegion, neighbour, STOCK, type Direction, type Layout, type Placed } from '../core/layout';
import { maker } from '../core/palette';
import { isEverything, matches } from '../core/filter';
import { isStock, type RunStore } from '../core/store';
import { headline, outcome } from '../core/verdict';
import { surface, type Theme } from './canvas';
import { h, replace, setText } from './dom';
import { finder } from './find';
import { drawGlyph, drawMark, drawStar } from './glyph';
import { attachViewport, Viewport } from './viewport';

const HIT_PX = 14;
const RELAYOUT_MS = 200;
const MIRROR_LIMIT = 300;
/** A long list is read out slower than it changes. */
const MIRROR_MS = 2000;
const KEYS: Record<string, Direction> = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

export function treeView(store: RunStore): { element: HTMLElement; update: (change: string) => void; dispose: () => void } {
  const heading = h('span', 'kf-tree-region');
  const line = h('div', { class: 'kf-hover', attrs: { 'aria-hidden': 'true' } });
  const mirror = h('ul', { class: 'kf-sr', attrs: { role: 'tree', 'aria-label': 'kernels tried for this region' } });
  const canvas = h('canvas', { attrs: { tabindex: 0, role: 'img', 'aria-label': 'search tree; arrow keys walk it, + and − zoom, 0 fits' } });
  const stage = h('div', 'kf-stage', canvas, line);
  const button = (label: string, title: string, act: () => void) =>
    h('button', { class: 'kf-button kf-small', title, attrs: { type: 'button', 'aria-label': title }, on: { click: act } }, label);
  const tools = h(
    'span',
    'kf-tools',
    button('−', 'zoom out', () => zoom(1 / 1.3)),
    button('+', 'zoom in', () => zoom(1.3)),
    button('Fit', 'fit the whole tree', () => fit()),
    button('★', 'go to the best kernel', () => goToBest())
  );
  const legend = h('div', 'kf-legend kf-tree-legend');
  const find = finder(store, () => {
    stage.hidden = find.isListing();
    update('selection');
  });
  const element = h('section', 'kf-tree', h('h3', 'kf-h', 'Tree ', heading, tools), find.bar, stage, find.list, legend, mirror);

  const view = new Viewport();
  let layout: Layout = { root: STOCK, nodes: [], index: new Map(), bounds: { x0: 0, y0: 0, x1: 0, y1: 0 } };
  let shown: string | null = null;
  let counted = -1;
  let laidAt = 0;
  let mirrored: number = STOCK;
  let mirroredRoot = NaN;
  let mirroredAt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const scene = surface(stage, canvas, (ctx, width, height, theme) => {
    if (view.automatic) {
      view.fit(layout.bounds, width, height);
    }
    paint(ctx, width, height, theme);
  });

  function relayout(): void {
    laidAt = performance.now();
    const region = store.selection.region;
    layout = region ? layoutRegion(store.run, region) : layoutRegion(store.run, '');
    if (layout.nodes.length <= MIRROR_LIMIT || layout.root !== mirroredRoot || laidAt - mirroredAt > MIRROR_MS) {
      mirrorTree();
    }
    scene.dirty();
  }

  /** New nodes move the tree at most five times a second; a click on another region at once. */
  function wantLayout(): void {
    const region = store.selection.region;
    const count = region ? (store.run.regions.get(region)?.nodes.length ?? 0) : 0;
    if (region !== shown) {
      shown = region;
      counted = count;
      view.automatic = true;
      relayout();
    } else if (count !== counted && timer === undefined) {
      counted = count;
      timer = setTimeout(
        () => {
          timer = undefined;
          counted = store.run.regions.get(shown ?? '')?.nodes.length ?? 0;
          relayout();
        },
        Math.max(0, RELAYOUT_MS - (performance.now() - laidAt))
      );
    }
  }

  function gainRadius(id: number): number {
    const node = store.run.nodes.get(id);
    const speedup = (node && !isStock(node) ? node.verdict?.timing?.speedup : 1) ?? 1;
    return 6 + 3.5 * Math.min(1, Math.max(0, Math.log2(speedup)));
  }

  function paint(ctx: CanvasRenderingContext2D, width: number, height: number, theme: Theme): void {
    const { k, tx, ty } = view;
    const region = store.run.regions.get(shown ?? '');
    const best = region?.best ?? null;
    const inside = (x: number, y: number) => x > -20 && x < width + 20 && y > -80 && y < height + 80;
    const path = pathToRoot(store.selection.node);
    ctx.lineWidth = 1;
    ctx.strokeStyle = theme.get('--kf-line');
    ctx.beginPath();
    const strong: [number, number, number, number][] = [];
    for (const n of layout.nodes) {
      const p = n.depth ? layout.index.get(n.parent) : undefined;
      if (!p) {
        continue;
      }
      const [x, y, px, py] = [n.x * k + tx, n.y * k + ty, p.x * k + tx, p.y * k + ty];
      if (!inside(x, y) && !inside(px, py)) {
        continue;
      }
      if (path.has(n.id)) {
        strong.push([x, y, px, py]);
      } else {
        curve(ctx, x, y, px, py);
      }
    }
    ctx.stroke();
    ctx.strokeStyle = theme.get('--kf-fg2');
    ctx.lineWidth = 2;
    ctx.beginPath();
    strong.forEach(s => curve(ctx, ...s));
    ctx.stroke();

    const scale = Math.min(1.15, Math.max(0.28, k));
    const filter = find.filter();
    const looking = !isEverything(filter);
    const closed = prunedBelow();
    for (const n of layout.nodes) {
      const [x, y] = [n.x * k + tx, n.y * k + ty];
      if (!inside(x, y)) {
        continue;
      }
      const node = store.run.nodes.get(n.id);
      const result = !node || isStock(node) ? 'stock' : outcome(node.verdict);
      const r = gainRadius(n.id) * scale;
      if (node && !isStock(node) && ((looking && !matches(node, filter)) || closed.has(n.id))) {
        drawGlyph(ctx, theme, node.proposer, result, x, y, r, 0.22);
        continue;
      }
      drawGlyph(ctx, theme, node?.proposer ?? 'stock', result, x, y, r);
      if (node?.mark) {
        drawMark(ctx, theme, node.mark, x, y, r);
      }
      if (n.id === best) {
        drawStar(ctx, theme, x + r * 1.1, y - r * 1.1, Math.max(5, 7 * scale));
      }
      if (n.id === (store.selection.node ?? layout.root) || n.id === store.selection.hover) {
        ctx.beginPath();
        ctx.arc(x, y, r + 5.5, 0, 2 * Math.PI);
        ctx.strokeStyle = theme.get('--kf-focus');
        ctx.lineWidth = n.id === store.selection.hover ? 1.2 : 2.2;
        ctx.stroke();
      }
      if (k > 0.85 && (n.id === best || n.id === layout.root || n.id === store.selection.node)) {
        label(ctx, theme, n, x, y + r + (n.id === (store.selection.node ?? layout.root) ? 18 : 13));
      }
    }
  }

  function label(ctx: CanvasRenderingContext2D, theme: Theme, n: Placed, x: number, y: number): void {
    const speedup = store.run.nodes.get(n.id)?.verdict?.timing?.speedup;
    const text = n.id === layout.root ? 'stock' : speedup ? ratio(speedup) : '';
    ctx.font = `600 11px ${theme.font}`;
    ctx.textAlign = 'center';
    ctx.lineWidth = 3;
    ctx.strokeStyle = theme.get('--kf-bg');
    ctx.strokeText(text, x, y);
    ctx.fillStyle = theme.get('--kf-fg');
    ctx.fillText(text, x, y);
  }

  /** Everything below a pruned node; nodes come parents first. */
  function prunedBelow(): Set<number> {
    const closed = new Set<number>();
    for (const n of layout.nodes) {
      if (n.depth && (closed.has(n.parent) || store.run.nodes.get(n.parent)?.mark === 'pruned')) {
        closed.add(n.id);
      }
    }
    return closed;
  }

  function pathToRoot(id: number | null): Set<number> {
    const path = new Set<number>();
    for (let at = id; at !== null && !path.has(at); at = store.run.nodes.get(at)?.parent ?? null) {
      path.add(at);
    }
    return path;
  }

  function hit(x: number, y: number): number | null {
    let found: number | null = null;
    let nearest = HIT_PX * HIT_PX;
    for (const n of layout.nodes) {
      const d = (n.x * view.k + view.tx - x) ** 2 + (n.y * view.k + view.ty - y) ** 2;
      if (d < nearest) {
        nearest = d;
        found = n.id;
      }
    }
    return found;
  }

  const select = (id: number | null) => store.selectNode(id === STOCK ? null : id);

  function zoom(factor: number): void {
    view.zoomAt(scene.width / 2, scene.height / 2, factor);
    scene.dirty();
  }

  function fit(): void {
    view.automatic = true;
    scene.dirty();
  }

  function goToBest(): void {
    const best = store.run.regions.get(shown ?? '')?.best ?? null;
    const placed = best === null ? undefined : layout.index.get(best);
    if (best !== null && placed) {
      view.k = Math.max(view.k, 0.9);
      view.centre(placed.x, placed.y, scene.width, scene.height);
      select(best);
    }
  }

  attachViewport(canvas, view, {
    moved: scene.dirty,
    click: (x, y) => {
      const id = hit(x, y);
      if (id !== null) {
        select(id);
      }
    },
    doubleClick: (x, y) => {
      const placed = layout.index.get(hit(x, y) ?? NaN);
      if (placed) {
        view.k = Math.max(view.k, 1);
        view.centre(placed.x, placed.y, scene.width, scene.height * 0.6);
        scene.dirty();
      } else {
        fit();
      }
    },
    point: (x, y) => {
      const id = hit(x, y);
      canvas.style.setProperty('cursor', id === null ? 'grab' : 'pointer');
      store.hover(id);
    },
    leave: () => store.hover(null)
  });

  canvas.addEventListener('keydown', event => {
    const direction = KEYS[event.key];
    if (direction) {
      const to = neighbour(layout, store.selection.node ?? layout.root, direction);
      select(to);
      const placed = layout.index.get(to);
      if (placed) {
        view.reveal(placed.x, placed.y, scene.width, scene.height);
      }
    } else if (event.key === '+' || event.key === '=') {
      zoom(1.3);
    } else if (event.key === '-') {
      zoom(1 / 1.3);
    } else if (event.key === '0') {
      fit();
    } else if (event.key === 'b') {
      goToBest();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });

  function describe(id: number): string {
    if (id === layout.root) {
      const region = store.run.regions.get(shown ?? '');
      return region?.stockUs ? `stock · ${micros(region.stockUs)}` : 'stock';
    }
    const node = store.run.nodes.get(id);
    return node ? [`#${id} ${maker(node.proposer).label}`, node.mark, node.idea || node.strategy, headline(node.verdict)].filter(Boolean).join(' · ') : '';
  }

  /** What a screen reader walks: the selected path's surroundings, not thousands of list items. */
  function mirrorTree(): void {
    const items = layout.nodes.slice(0, MIRROR_LIMIT).map(n =>
      h('li', { attrs: { role: 'treeitem', 'aria-level': n.depth + 1, 'aria-selected': String(n.id === (store.selection.node ?? layout.root)) } }, describe(n.id))
    );
    if (layout.nodes.length > MIRROR_LIMIT) {
      items.push(h('li', { attrs: { role: 'treeitem', 'aria-level': 1, 'aria-selected': 'false' } }, `and ${layout.nodes.length - MIRROR_LIMIT} more`));
    }
    mirror.replaceChildren(...items);
    mirrored = store.selection.node ?? layout.root;
    mirroredRoot = layout.root;
    mirroredAt = laidAt;
  }

  /** Follow the selection in the mirror without building it anew. */
  function mirrorSelection(): void {
    const selected = store.selection.node ?? layout.root;
    if (selected !== mirrored) {
      layout.nodes.slice(0, MIRROR_LIMIT).forEach((n, i) => {
        if (n.id === selected || n.id === mirrored) {
          mirror.children[i]?.setAttribute('aria-selected', String(n.id === selected));
        }
      });
      mirrored = selected;
    }
  }

  function drawLegend(): void {
    const present = new Set<string>();
    for (const id of store.run.regions.get(shown ?? '')?.nodes ?? []) {
      present.add(store.run.nodes.get(id)?.proposer ?? '');
    }
    const key = ['stock', ...['templates', 'llm', 'human', 'replay'].filter(p => present.has(p))].join();
    if (legend.dataset.key === key) {
      return;
    }
    legend.dataset.key = key;
    const marks: Record<string, string> = { circle: '●', diamond: '◆', square: '■', triangle: '▲', hexagon: '⬢' };
    replace(
      legend,
      ...key.split(',').map(p => h('span', {}, h('span', { style: { color: `var(${maker(p).colour})` } }, marks[maker(p).shape]), ` ${maker(p).label}`)),
      h('span', {}, h('span', 'kf-good', '■'), ' faster'),
      h('span', {}, h('span', 'kf-bad', '✕'), ' failed'),
      h('span', {}, h('span', 'kf-star', '★'), ' best')
    );
  }

  function update(change: string): void {
    wantLayout();
    if (change !== 'hover') {
      const region = store.run.regions.get(shown ?? '');
      setText(heading, region ? `${region.info.title} ×${region.info.count}` : '');
      drawLegend();
      find.update();
      mirrorSelection();
    }
    const hovered = store.selection.hover;
    setText(line, hovered === null ? '' : describe(hovered));
    line.hidden = hovered === null;
    scene.dirty();
  }
  return {
    element,
    update,
    dispose: () => {
      clearTimeout(timer);
      scene.dispose();
    }
  };
}

function curve(ctx: CanvasRenderingContext2D, x: number, y: number, px: number, py: number): void {
  const mid = (y + py) / 2;
  ctx.moveTo(px, py);
  ctx.bezierCurveTo(px, mid, x, mid, x, y);
}
