// Where regions and kernels stand under the measured roofs: x = flop/byte, y = Gflop/s.

import type { RegionInfo } from './protocol';
import { isStock, type Run } from './store';

const ITEM_BYTES: Record<string, number> = {
  f64: 8,
  f32: 4,
  f16: 2,
  bf16: 2,
  i64: 8,
  i32: 4,
  i16: 2,
  i8: 1,
  u8: 1,
  b1: 1
};
// Ops that move or rename data; everything else is counted as one flop per element it touches.
const FREE = new Set(
  ('view _unsafe_view unsafe_view t transpose permute unsqueeze squeeze expand slice select alias ' +
    '_to_copy to_copy clone cat stack where copy full zeros ones arange embedding').split(' ')
);

interface Spec {
  numel: number;
  bytes: number;
}

/** `f32[512,2304;1,512@8]`, as TensorSpec prints it; a stride of 0 is read once. */
export function parseSpec(text: string): Spec | null {
  const match = /^(\w+)\[([\d,]*)(?:;([\d,]*))?(?:@\d+)?\]$/.exec(text.trim());
  if (!match || !(match[1] in ITEM_BYTES)) {
    return null;
  }
  const shape = match[2].split(',').filter(Boolean).map(Number);
  const strides = match[3]?.split(',').map(Number);
  const product = (sizes: number[]) => sizes.reduce((a, b) => a * b, 1);
  const read = strides ? shape.filter((n, i) => strides[i] !== 0 || n === 0) : shape;
  return { numel: product(shape), bytes: product(read) * ITEM_BYTES[match[1]] };
}

export function regionBytes(region: RegionInfo): number {
  const specs = [...region.inputs, ...region.outputs].map(parseSpec);
  return region.bytes ?? specs.reduce((sum, s) => sum + (s?.bytes ?? 0), 0);
}

/** Estimated from the canonical text: per op, the largest tensor it reads or writes. */
export function regionFlops(region: RegionInfo): number {
  if (region.flops !== undefined) {
    return region.flops;
  }
  const numel = new Map<string, number>();
  region.inputs.forEach((spec, i) => numel.set(`in${i}`, parseSpec(spec)?.numel ?? 0));
  let flops = 0;
  for (const line of region.text.split('\n')) {
    const match = /^\s*(t\d+) = \w+\.(\w+)[\w.]*\((.*)\) : (.*)$/.exec(line);
    if (!match) {
      continue;
    }
    const first = /\w+\[[^\]]*\]/.exec(match[4]);
    const out = first ? (parseSpec(first[0])?.numel ?? 0) : 0;
    numel.set(match[1], out);
    if (!FREE.has(match[2])) {
      const read = [...match[3].matchAll(/\b(?:in|t)\d+\b/g)].map(m => numel.get(m[0]) ?? 0);
      flops += Math.max(out, ...read);
    }
  }
  return flops;
}

export interface RoofDot {
  region: string;
  /** null: the stock implementation. */
  node: number | null;
  intensity: number;
  gflops: number;
}

export function roofDots(run: Run): RoofDot[] {
  const dots: RoofDot[] = [];
  for (const region of run.regions.values()) {
    const flops = regionFlops(region.info);
    const moved = regionBytes(region.info);
    if (!flops || !moved) {
      continue;
    }
    const at = (us: number, node: number | null) =>
      dots.push({ region: region.info.hash, node, intensity: flops / moved, gflops: flops / us / 1e3 });
    at(region.stockUs ?? region.info.time_us, null);
    for (const id of region.nodes) {
      const node = run.nodes.get(id);
      const timing = node && !isStock(node) ? node.verdict?.timing : null;
      if (timing && timing.kernel_us > 0) {
        at(timing.kernel_us, id);
      }
    }
  }
  return dots;
}
