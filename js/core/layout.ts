// Tidy tree of one region: stock at the root, its kernels below, positions in world units.

import { hierarchy, tree } from 'd3-hierarchy';
import type { Run } from './store';

/** Stands for stock until the run has measured it. */
export const STOCK = -1;
export const STEP_X = 26;
export const STEP_Y = 62;

export interface Placed {
  id: number;
  x: number;
  y: number;
  parent: number;
  depth: number;
}

export interface Layout {
  root: number;
  /** In depth-first order, the root first. */
  nodes: Placed[];
  index: Map<number, Placed>;
  bounds: { x0: number; y0: number; x1: number; y1: number };
}

interface Item {
  id: number;
  children: Item[];
}

/** Lay out a region's tree. 10,000 nodes take some 6 ms, so callers redo it whole. */
export function layoutRegion(run: Run, region: string): Layout {
  const view = run.regions.get(region);
  const roots = view?.roots ?? [];
  const stock = roots.find(id => run.nodes.get(id)?.proposer === 'stock');
  const root: Item = { id: stock ?? STOCK, children: [] };
  const top = roots.filter(id => id !== stock).concat(stock === undefined ? [] : (run.nodes.get(stock)?.children ?? []));
  // Iterative: a chain of thousands of repairs must not overflow the stack.
  const stack: { item: Item; ids: readonly number[] }[] = [{ item: root, ids: top }];
  while (stack.length) {
    const { item, ids } = stack.pop()!;
    for (const id of ids) {
      const node = run.nodes.get(id);
      if (node) {
        const child: Item = { id, children: [] };
        item.children.push(child);
        stack.push({ item: child, ids: node.children });
      }
    }
  }
  const laid = tree<Item>()
    .nodeSize([STEP_X, STEP_Y])
    .separation((a, b) => (a.parent === b.parent ? 1 : 1.25))(hierarchy(root));
  const nodes: Placed[] = [];
  const index = new Map<number, Placed>();
  const bounds = { x0: 0, y0: 0, x1: 0, y1: 0 };
  laid.eachBefore(n => {
    const placed = { id: n.data.id, x: n.x, y: n.y, parent: n.parent?.data.id ?? root.id, depth: n.depth };
    nodes.push(placed);
    index.set(placed.id, placed);
    bounds.x0 = Math.min(bounds.x0, n.x);
    bounds.x1 = Math.max(bounds.x1, n.x);
    bounds.y1 = Math.max(bounds.y1, n.y);
  });
  return { root: root.id, nodes, index, bounds };
}

export type Direction = 'up' | 'down' | 'left' | 'right';

/** The node an arrow key leads to: parent, middle child, or the neighbour on the same level. */
export function neighbour(layout: Layout, from: number, direction: Direction): number {
  const here = layout.index.get(from);
  if (!here) {
    return layout.root;
  }
  if (direction === 'up') {
    return here.depth ? here.parent : from;
  }
  if (direction === 'down') {
    const children = layout.nodes.filter(n => n.depth === here.depth + 1 && n.parent === from);
    return children.length ? children[Math.floor((children.length - 1) / 2)].id : from;
  }
  const level = layout.nodes.filter(n => n.depth === here.depth).sort((a, b) => a.x - b.x);
  const at = level.findIndex(n => n.id === from) + (direction === 'right' ? 1 : -1);
  return level[Math.min(level.length - 1, Math.max(0, at))].id;
}
