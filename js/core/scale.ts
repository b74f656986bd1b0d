// Linear and logarithmic axes with round ticks.

export interface Scale {
  (value: number): number;
  ticks: number[];
  domain: [number, number];
}

export function linear(domain: [number, number], range: [number, number], count = 4): Scale {
  const [d0, d1] = domain[0] === domain[1] ? [domain[0], domain[0] + 1] : domain;
  const map = (v: number) => range[0] + ((v - d0) / (d1 - d0)) * (range[1] - range[0]);
  const raw = (d1 - d0) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find(m => m * power >= raw * 0.999) ?? 10);
  const ticks: number[] = [];
  for (let i = Math.ceil(d0 / step - 1e-9); i * step <= d1 + step * 1e-6; i++) {
    ticks.push(Number((i * step).toPrecision(10)));
  }
  return Object.assign(map, { ticks, domain: [d0, d1] as [number, number] });
}

export function log(domain: [number, number], range: [number, number]): Scale {
  const [l0, l1] = [Math.log10(domain[0]), Math.log10(Math.max(domain[1], domain[0] * 1.01))];
  const map = (v: number) => range[0] + ((Math.log10(v) - l0) / (l1 - l0)) * (range[1] - range[0]);
  const ticks: number[] = [];
  const steps = l1 - l0 < 1.2 ? [1, 2, 5] : [1];
  for (let e = Math.floor(l0); e <= Math.ceil(l1); e++) {
    for (const m of steps) {
      const v = m * 10 ** e;
      if (Math.log10(v) >= l0 - 1e-9 && Math.log10(v) <= l1 + 1e-9) {
        ticks.push(v);
      }
    }
  }
  return Object.assign(map, { ticks, domain: [10 ** l0, 10 ** l1] as [number, number] });
}

/** Tick labels without noise: 0.1, 1, 10, 1k. */
export function tickLabel(v: number): string {
  return v >= 1e6 ? `${v / 1e6}M` : v >= 1e3 ? `${v / 1e3}k` : String(Number(v.toPrecision(4)));
}
