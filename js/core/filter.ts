// Which kernels a person is looking for: by verdict, by maker, by words.

import { isStock, type Run, type TreeNode } from './store';
import { headline, outcome } from './verdict';

export const KINDS = ['all', 'faster', 'correct', 'failed', 'being judged', 'templates', 'LLM', 'mine', 'marked'] as const;
export type Kind = (typeof KINDS)[number];

export interface Filter {
  kind: Kind;
  words: string;
}

export const EVERYTHING: Filter = { kind: 'all', words: '' };

export function isEverything(filter: Filter): boolean {
  return filter.kind === 'all' && !filter.words.trim();
}

/** Every word must occur somewhere in what is known of the node; `#17` is the node itself. */
export function matches(node: TreeNode, filter: Filter): boolean {
  return isKind(node, filter.kind) && hasWords(node, filter.words);
}

function isKind(node: TreeNode, kind: Kind): boolean {
  const result = outcome(node.verdict);
  switch (kind) {
    case 'all':
      return true;
    case 'faster':
      return result === 'faster';
    case 'correct':
      return result === 'faster' || result === 'slower';
    case 'failed':
      return result === 'failed';
    case 'being judged':
      return result === 'pending';
    case 'templates':
      return node.proposer === 'templates';
    case 'LLM':
      return node.proposer === 'llm';
    case 'mine':
      return node.proposer === 'human';
    case 'marked':
      return node.mark !== '';
  }
}

function hasWords(node: TreeNode, words: string): boolean {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) {
    return true;
  }
  const known = `#${node.id} ${node.proposer} ${node.strategy} ${node.idea} ${headline(node.verdict)} ${node.verdict?.status ?? ''} ${node.verdict?.evidence ?? ''}`.toLowerCase();
  return wanted.every(word => (/^#\d+$/.test(word) ? word === `#${node.id}` : known.includes(word)));
}

/** The region's matching kernels, newest first. */
export function found(run: Run, region: string, filter: Filter): TreeNode[] {
  const out: TreeNode[] = [];
  for (const id of run.regions.get(region)?.nodes ?? []) {
    const node = run.nodes.get(id);
    if (node && !isStock(node) && matches(node, filter)) {
      out.push(node);
    }
  }
  return out.reverse();
}
