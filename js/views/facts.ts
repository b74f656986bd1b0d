// What is known of a kernel as tables and texts: evidence, prompts, costs.

import { digits, micros, ratio, ratioWithInterval, usd } from '../core/format';
import type { ModelCalled } from '../core/protocol';
import type { RegionView, Run, TreeNode } from '../core/store';
import { checkCount } from '../core/verdict';
import { h } from './dom';

type Rows = [string, string][];

export function verdictTable(node: TreeNode): HTMLElement {
  const v = node.verdict;
  if (!v) {
    return h('p', 'kf-empty', 'Not judged yet.');
  }
  const rows: Rows = [];
  const t = v.timing;
  if (t) {
    rows.push(['kernel', micros(t.kernel_us)], [`best stock (${t.stock})`, micros(t.stock_us)]);
    rows.push(['speed-up', ratioWithInterval(t.speedup, t.low, t.high)], ['samples', String(t.samples)]);
  }
  for (const [name, us] of Object.entries(v.stocks_us)) {
    if (name !== t?.stock) {
      rows.push([name, `${micros(us)}${t ? ` · ${ratio(us / t.kernel_us)}` : ''}`]);
    }
  }
  rows.push(['checks', `${checkCount(v)} run`]);
  for (const [name, n] of Object.entries(v.checks)) {
    rows.push([`· ${name.replace(/_/g, ' ')}`, String(n)]);
  }
  if (v.max_error !== null) {
    rows.push(['largest error', `${digits(v.max_error)}× its bound`]);
  }
  for (const [name, value] of Object.entries(v.resources)) {
    rows.push([name.replace(/_/g, ' '), digits(value, 6).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')]);
  }
  rows.push(['judged in', `${digits(v.seconds)} s`]);
  if (v.binary_hash) {
    rows.push(['binary', v.binary_hash.slice(0, 12)]);
  }
  const evidence = v.evidence ? h('pre', { class: 'kf-evidence', attrs: { tabindex: 0 } }, v.evidence) : null;
  return h('div', {}, evidence, table(rows));
}

export function stockTable(run: Run, region: RegionView): HTMLElement {
  const rows: Rows = [];
  const judged = region.nodes.map(id => run.nodes.get(id)?.verdict).find(v => v && Object.keys(v.stocks_us).length);
  for (const [name, us] of Object.entries(judged?.stocks_us ?? {})) {
    rows.push([name, micros(us)]);
  }
  rows.push(['in the model', micros(region.info.time_us)], ['roof', micros(region.info.floor_us)]);
  region.info.inputs.forEach((spec, i) => rows.push([`in${i}`, spec]));
  region.info.outputs.forEach((spec, i) => rows.push([`out${i}`, spec]));
  return table(rows);
}

/** Prompts and replies word for word; null when their text is not here (`fetch` gets it from a live kernel). */
export function promptView(calls: readonly ModelCalled[]): HTMLElement | null {
  if (!calls.length) {
    return h('p', 'kf-empty', 'No language model was asked for this kernel.');
  }
  if (calls.some(c => (c.text_chars ?? 0) > 0 && !c.prompt)) {
    return null;
  }
  const parts = calls.map((call, i) => {
    const head = [call.model, calls.length > 1 ? `call ${i + 1} of ${calls.length}` : '', call.outcome].filter(Boolean).join(' · ');
    return h('div', 'kf-call', h('h4', 'kf-h4', head), block('prompt', call.prompt), block('reply', call.reply), call.reason ? h('p', 'kf-empty', call.reason) : null);
  });
  return h('div', {}, ...parts);
}

function block(name: string, text: string): HTMLElement {
  const body = h('pre', { class: 'kf-text', attrs: { tabindex: 0, role: 'region', 'aria-label': name } }, text);
  return h('details', { attrs: { open: true } }, h('summary', {}, `${name}, ${text.length.toLocaleString('en')} characters`), body);
}

/** Money and time of a kernel, then of its region and the run, so that the one can be seen in the others. */
export function costTable(run: Run, node: TreeNode | undefined, region: RegionView | undefined): HTMLElement {
  const rows: Rows = [];
  const sum = (calls: readonly ModelCalled[]) => calls.reduce((s, c) => s + c.usd, 0);
  if (node) {
    for (const call of node.calls) {
      const cached = call.cached_tokens ? `, ${call.cached_tokens.toLocaleString('en')} of them cached` : '';
      const tokens = `${call.input_tokens.toLocaleString('en')} tokens in${cached}, ${call.output_tokens.toLocaleString('en')} out`;
      rows.push([call.model, `${usd(call.usd)}${call.is_estimate ? ' (estimated)' : ''} · ${tokens} · ${digits(call.seconds)} s`]);
    }
    rows.push(['this kernel', `${usd(sum(node.calls))}${node.verdict ? ` · judged in ${digits(node.verdict.seconds)} s` : ''}`]);
  }
  if (region) {
    const mine = run.calls.filter(c => c.region === region.info.hash);
    const judged = region.nodes.reduce((s, id) => s + (run.nodes.get(id)?.verdict?.seconds ?? 0), 0);
    rows.push(['its region', `${usd(sum(mine))} · ${mine.length} calls · ${digits(judged)} s of judging`]);
  }
  const m = run.meter;
  if (m) {
    rows.push(['the run', `${usd(m.spent_usd)}${m.budget_usd > 0 ? ` of ${usd(m.budget_usd)}` : ''} · ${run.calls.length} calls · ${digits(m.elapsed_s)} s`]);
  }
  return table(rows);
}

export function table(rows: Rows): HTMLElement {
  return h('table', 'kf-facts', h('tbody', {}, ...rows.map(([name, value]) => h('tr', {}, h('th', { attrs: { scope: 'row' } }, name), h('td', {}, value)))));
}
