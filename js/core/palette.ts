// Okabe–Ito colours, always together with a shape, so that no meaning hangs on hue alone.

export type Shape = 'circle' | 'diamond' | 'square' | 'triangle' | 'hexagon';

export interface Maker {
  label: string;
  shape: Shape;
  /** CSS custom property that holds the outline colour in the current theme. */
  colour: string;
}

const MAKERS: Record<string, Maker> = {
  stock: { label: 'stock', shape: 'circle', colour: '--kf-stock' },
  templates: { label: 'templates', shape: 'diamond', colour: '--kf-templates' },
  llm: { label: 'LLM', shape: 'square', colour: '--kf-llm' },
  human: { label: 'you', shape: 'triangle', colour: '--kf-human' },
  replay: { label: 'replay', shape: 'hexagon', colour: '--kf-replay' }
};

export function maker(proposer: string): Maker {
  return MAKERS[proposer] ?? { label: proposer, shape: 'hexagon', colour: '--kf-replay' };
}
