// What a person does with a kernel: edit it and have it judged, go on from it with a hint, pin it, prune it.

import { isStock, type RunStore, type TreeNode } from '../core/store';
import { button, type Controls } from './controls';
import { h, setText } from './dom';

export interface Actions {
  element: HTMLElement;
  /** The editor, in place of the source while it is open. */
  editor: HTMLElement;
  isEditing: () => boolean;
  edit: (node: TreeNode, source: string) => void;
  update: (node: TreeNode | undefined, canEdit: boolean) => void;
}

export function nodeActions(store: RunStore, controls: Controls | null, changed: () => void, startEdit: () => void): Actions {
  let node: TreeNode | undefined;
  let editing: TreeNode | null = null;
  let known = 0;

  const say = (...args: Parameters<Controls['send']>) => {
    store.setAnswer(null);
    controls?.send(...args);
  };
  const mark = (to: 'pin' | 'prune') => {
    if (node) {
      say(node.mark === (to === 'pin' ? 'pinned' : 'pruned') ? 'unmark' : to, { arguments: { node: node.id } });
    }
  };
  const edit = button('Edit', 'change the source and have it judged', startEdit);
  const pin = button('Pin', 'let the search go on from this kernel', () => mark('pin'));
  const prune = button('Prune', 'never build on this kernel again', () => mark('prune'));
  const go = button('Continue…', 'write one more kernel from here, with a hint', () => {
    form.hidden = !form.hidden;
    go.setAttribute('aria-expanded', String(!form.hidden));
    if (!form.hidden) {
      hint.focus();
    }
  });
  go.setAttribute('aria-expanded', 'false');
  const hint = h('input', { class: 'kf-input kf-hint', attrs: { type: 'text', placeholder: 'what should it try? (may be empty)', 'aria-label': 'hint for the next kernel' } });
  const form = h('form', { class: 'kf-form', attrs: { 'aria-label': 'continue from here' } }, hint, h('button', { class: 'kf-button kf-small', attrs: { type: 'submit' } }, 'Go'));
  form.hidden = true;
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (node) {
      say('continue_from', { arguments: { node: node.id, hint: hint.value } });
      hint.value = '';
      form.hidden = true;
      go.setAttribute('aria-expanded', 'false');
    }
  });
  const row = h('div', 'kf-actions', edit, pin, prune, go);
  const element = h('div', {}, row, form);

  const text = h('textarea', { class: 'kf-editor', attrs: { spellcheck: 'false', 'aria-label': 'kernel source', wrap: 'off' } });
  const judge = button('Judge it', 'judge this source now, whatever the budget', () => {
    if (editing) {
      say('submit', { arguments: { source: text.value, parent: editing.id, idea: `edited from #${editing.id}` } });
      known = Math.max(...store.run.nodes.keys());
      setText(judge, 'Handed in');
      judge.disabled = true;
    }
  });
  const cancel = button('Cancel', 'leave the source as it was', () => close());
  const editor = h('div', 'kf-edit', text, h('div', 'kf-actions', judge, cancel, h('span', 'kf-note', 'Ctrl+Enter judges it, Escape leaves')));
  text.addEventListener('keydown', event => {
    // A notebook has shortcuts of its own for most keys.
    event.stopPropagation();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      judge.click();
    } else if (event.key === 'Escape') {
      close();
    }
  });

  function close(): void {
    editing = null;
    judge.disabled = false;
    setText(judge, 'Judge it');
    changed();
  }

  return {
    element,
    editor,
    isEditing: () => editing !== null,
    edit(from, source) {
      editing = from;
      text.value = source;
      changed();
      text.focus();
    },
    update(shown, canEdit) {
      if (editing && judge.disabled) {
        if (store.answer?.to === 'submit' && store.answer.error) {
          judge.disabled = false;
          setText(judge, 'Judge it');
        } else {
          // Ours is the newest child by hand; show it as soon as it is in the tree.
          const mine = editing.children.filter(id => id > known && store.run.nodes.get(id)?.proposer === 'human').pop();
          if (mine !== undefined) {
            close();
            store.selectNode(mine);
            return;
          }
        }
      }
      if (node?.id !== shown?.id) {
        form.hidden = true;
        go.setAttribute('aria-expanded', 'false');
      }
      node = shown;
      element.hidden = !controls || !store.live || !shown || editing !== null;
      edit.hidden = !canEdit;
      prune.hidden = pin.hidden = !shown || isStock(shown);
      setText(pin, shown?.mark === 'pinned' ? 'Unpin' : 'Pin');
      setText(prune, shown?.mark === 'pruned' ? 'Take back' : 'Prune');
    }
  };
}
