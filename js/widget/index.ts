// The anywidget face: one store per model, kept in `initialize`; every view of the model subscribes.

import type { AnyModel } from '@anywidget/types';
import { BUNDLE_EVENT, PACK_EVENT, type FromKernel, type Saved, type ToKernel } from '../core/protocol';
import { FINAL_STATES, RunStore } from '../core/store';
import { mount } from '../views/app';

/** The kernel's subshell is created after the comm opens; only a later hello arrives through it (and keeps Stop prompt). */
const SECOND_HELLO_MS = 1000;
/** The view that a reload brings back is not in the page yet when the run's first state is known. */
const BUNDLE_MS = 500;

interface Traits {
  /** False for a run read back from the store: nothing there can go on. */
  steerable: boolean;
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
  const views = new Set<HTMLElement>();

  /** A comm whose kernel has gone throws; that is then what there is to show. */
  function say(model: Model, message: ToKernel): void {
    try {
      void Promise.resolve(model.send(message)).catch(() => store.setOrphaned(true));
    } catch {
      store.setOrphaned(true);
    }
  }

  function initialize({ model, signal }: { model: Model; signal?: AbortSignal }): () => void {
    const send = (message: ToKernel) => say(model, message);
    const hello = () => send({ v: 1, kind: 'hello', have: store.next });
    const snapshot = readSnapshot(model);
    store.live = true;
    const onMessage = (message: FromKernel) => {
      if (store.orphaned) {
        store.live = true;
        store.setOrphaned(false);
      }
      if (message.kind === 'source') {
        store.setSource(message.node, message.source);
      } else if (message.kind === 'calls') {
        store.setCalls(message.node, message.calls);
      } else if (message.kind === 'answer') {
        store.setAnswer(message);
      } else if (message.kind === 'bundle') {
        views.forEach(view => view.dispatchEvent(new CustomEvent(BUNDLE_EVENT, { bubbles: true, detail: message.data })));
      } else if (!store.apply(message)) {
        hello();
      }
    };
    // The output that the notebook stores is then brought up to date, also where the kernel cannot find it
    // (JupyterLab forgets display ids when the page is loaded again).
    let final = false;
    const unsubscribe = store.subscribe(() => {
      const now = FINAL_STATES.has(store.run.state);
      if (now && !final && store.live) {
        setTimeout(() => send({ v: 1, kind: 'want', what: 'bundle' }), BUNDLE_MS);
      }
      final = now;
    });
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
    if (snapshot) {
      store.apply({ ...snapshot, kind: 'reset' });
    }
    model.on('msg:custom', onMessage as never);
    model.on('change:snapshot', onSnapshot);
    try {
      model.on('comm_live_update' as never, onLive as never);
    } catch {
      // A host whose model knows only AFM events.
    }
    hello();
    const again = setTimeout(hello, SECOND_HELLO_MS);
    const stop = () => {
      clearTimeout(again);
      unsubscribe();
    };
    signal?.addEventListener('abort', stop);
    return stop;
  }

  function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const pack = (event: Event) => {
      (event as CustomEvent<{ saved?: Saved }>).detail.saved = store.pack();
    };
    el.addEventListener(PACK_EVENT, pack);
    views.add(el);
    const unmount = mount(el, store, {
      controls: model.get('steerable') === false ? null : { send: (kind, more) => say(model, { v: 1, kind, ...more }) },
      want: (what, node) => say(model, { v: 1, kind: 'want', what, node })
    });
    el.classList.add('kf-live');
    return () => {
      views.delete(el);
      el.removeEventListener(PACK_EVENT, pack);
      unmount();
    };
  }

  return { initialize, render };
};
