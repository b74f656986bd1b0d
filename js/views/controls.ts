// What a view may ask of a live kernel. Saved runs and reports have neither.

import type { CommandName } from '../core/protocol';
import { h } from './dom';

export interface Controls {
  send(kind: CommandName, more?: { arguments?: Record<string, unknown>; format?: string }): void;
}

export type Want = (what: 'source' | 'calls', node: number) => void;

export function button(label: string, title: string, act: () => void, small = true): HTMLButtonElement {
  return h('button', { class: small ? 'kf-button kf-small' : 'kf-button', title, attrs: { type: 'button' }, on: { click: act } }, label);
}

/** A number with its unit, as the budget form and others need it. */
export function numberField(label: string, step: string): { element: HTMLElement; read: () => number } {
  const input = h('input', { class: 'kf-input', attrs: { type: 'number', min: 0, step, placeholder: '0', 'aria-label': label } });
  return {
    element: h('label', 'kf-field', input, ` ${label}`),
    read: () => {
      const value = Number(input.value);
      input.value = '';
      return Number.isFinite(value) && value > 0 ? value : 0;
    }
  };
}
