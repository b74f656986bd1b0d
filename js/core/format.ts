// Numbers as people read them: three digits, a unit, never a lonely ratio without its ×.

const finite = (x: number | null | undefined): x is number => typeof x === 'number' && Number.isFinite(x);

/** Three significant digits without exponents or trailing noise: 1723, 226, 33.4, 1.42, 0.018. */
export function digits(x: number, significant = 3): string {
  if (!finite(x)) {
    return '–';
  }
  if (x === 0) {
    return '0';
  }
  const places = Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(x))));
  return x.toFixed(Math.min(places, 6));
}

export function ratio(x: number | null | undefined): string {
  return finite(x) ? `${x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2)}×` : '–';
}

/** 1.42× (1.38–1.45) */
export function ratioWithInterval(x: number, low: number | null, high: number | null): string {
  return finite(low) && finite(high) ? `${ratio(x)} (${low.toFixed(2)}–${high.toFixed(2)})` : ratio(x);
}

/** A time given in µs, in the unit that keeps it short. */
export function micros(us: number | null | undefined): string {
  if (!finite(us)) {
    return '–';
  }
  if (Math.abs(us) >= 1e6) {
    return `${digits(us / 1e6)} s`;
  }
  return Math.abs(us) >= 1e4 ? `${digits(us / 1e3)} ms` : `${digits(us)} µs`;
}

export function percent(x: number): string {
  const p = 100 * x;
  return p > 0 && p < 0.95 ? `${p.toFixed(1)}%` : `${p.toFixed(0)}%`;
}

export function usd(x: number): string {
  return x > 0 && x < 0.01 ? `$${x.toFixed(4)}` : `$${x.toFixed(2)}`;
}

/** 0:05, 2:10, 1:02:03 */
export function clock(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const h = Math.floor(s / 3600);
  const m = Math.floor((s % 3600) / 60);
  const two = (n: number) => String(n).padStart(2, '0');
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1000;
    i++;
  }
  return `${i ? digits(n) : n} ${units[i]}`;
}
