// CodeMirror for reading: one source, or two side by side with what changed.

import { cpp } from '@codemirror/lang-cpp';
import { defaultHighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { MergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { jupyterHighlightStyle } from '@jupyterlab/codemirror';
import { h } from '../views/dom';

const READING: Extension = [
  lineNumbers(),
  cpp(),
  syntaxHighlighting(jupyterHighlightStyle),
  syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
  EditorState.readOnly.of(true),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ 'aria-label': 'kernel source', tabindex: '0' })
];

export class SourceEditor {
  readonly element = h('div', 'kf-cm');
  private open: { destroy(): void } | null = null;

  show(source: string, before: string | null): void {
    this.open?.destroy();
    this.element.replaceChildren();
    if (before === null) {
      this.open = new EditorView({ parent: this.element, state: EditorState.create({ doc: source, extensions: READING }) });
    } else {
      this.open = new MergeView({
        parent: this.element,
        a: { doc: before, extensions: READING },
        b: { doc: source, extensions: READING },
        collapseUnchanged: { margin: 3, minSize: 6 }
      });
    }
  }

  dispose(): void {
    this.open?.destroy();
    this.open = null;
  }
}
