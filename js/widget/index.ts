// The anywidget face: one store per model, kept in `initialize`; every view of the model subscribes.

import type { AnyModel } from '@anywidget/types';
import type { FromKernel, Saved, ToKernel } from '../core/protocol';
import { RunStore } from '../core/store';
import { mount } from '../views/app';

/** The kernel's subshell is created after the comm opens; only a later hello arrives through it (and keeps Stop prompt). */
const SECOND_HELLO_MS = 1000;

interface Traits {
  snapshot: DataView | null;
}
type Model = AnyModel<Traits>;


function readSnapshot(model: Model): Saved | null {
  const view = model.get('snapshot');
  if (!view || !view.byteLength) {
    return null;
  }
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return JSON.parse(new TextDecoder().decode(bytes)) as Saved;
}

export default () => {
  // One closure per model: anywidget calls this function once for each, so the store is shared by its views.
  const store = new RunStore();

  function initialize({ model, signal }: { model: Model; signal?: AbortSignal }): () => void {
    const send = (message: ToKernel) => model.send(message);
    const hello = () => send({ v: 1, kind: 'hello', have: store.next });
    const snapshot = readSnapshot(model);
    if (snapshot) {
      store.apply({ ...snapshot, kind: 'reset' });
    }
    store.live = true;
    const onMessage = (message: FromKernel) => {
      if (store.orphaned) {
        store.live = true;
        store.setOrphaned(false);
      }
      if (message.kind === 'source') {
        store.setSource(message.node, message.source);
      } else if (!store.apply(message)) {
        hello();
      }
    };
    const onSnapshot = () => {
      // Sent at the end of a run; a view that missed nothing has it all already.
      const saved = readSnapshot(model);
      if (saved && saved.to > store.next) {
        store.apply({ ...saved, kind: 'reset' });
      }
    };
    // Fires in JupyterLab when the kernel restarts or dies (not part of the AFM contract).
    const onLive = () => {
      const live = (model as unknown as { comm_live?: boolean }).comm_live;
      if (live === false || live === undefined) {
        store.setOrphaned(true);
      }
    };
    model.on('msg:custom', onMessage as never);
    model.on('change:snapshot', onSnapshot);
    try {
      model.on('comm_live_update' as never, onLive as never);
    } catch {
      // A host whose model knows only AFM events.
    }
    hello();
    const again = setTimeout(hello, SECOND_HELLO_MS);
    const stop = () => clearTimeout(again);
    signal?.addEventListener('abort', stop);
    return stop;
  }

  function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    return mount(el, store, {
      controls: { send: kind => model.send({ v: 1, kind }) },
      want: node => model.send({ v: 1, kind: 'want', what: 'source', node })
    });
  }

  return { initialize, render };
};
