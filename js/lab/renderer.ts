// Our own MIME type: a saved notebook shows the stored run at once, and the live view replaces it when
// the kernel that made it is still there. ipywidgets alone would show "model not found".

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel, Widget } from '@lumino/widgets';
import { BUNDLE_EVENT, PACK_EVENT, type Saved } from '../core/protocol';
import { RunStore } from '../core/store';
import { mount } from '../views/app';
import { STOP_EVENT } from '../views/header';
import { stopRun } from './subshell';

export const RUN_MIME = 'application/vnd.kernelforge.run.v1+json';
const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';
/** Before ipywidgets' renderer, which sits at −10 and claims the bundle otherwise. */
const RANK = -20;
const POLL_MS = 250;

type Data = Record<string, unknown>;

export function addRunRenderer(panel: NotebookPanel): void {
  const registry = panel.content.rendermime;
  registry.addFactory(
    {
      safe: true,
      mimeTypes: [RUN_MIME],
      createRenderer: () => new RunRenderer(panel, registry)
    },
    RANK
  );
}

class RunRenderer extends Panel implements IRenderMime.IRenderer {
  private timer: ReturnType<typeof setInterval> | undefined;
  private shownLive = '';
  private model: IRenderMime.IMimeModel | null = null;

  constructor(
    private notebook: NotebookPanel,
    private registry: IRenderMimeRegistry
  ) {
    super();
    this.addClass('kf-output');
    // Besides its own message: the kernel's subshell hears this also while a cell is running.
    this.node.addEventListener(BUNDLE_EVENT, event => this.storeOutput((event as CustomEvent<Data>).detail));
    notebook.context.saveState.connect(this.beforeSave, this);
    this.node.addEventListener(STOP_EVENT, () => {
      const kernel = notebook.sessionContext.session?.kernel;
      if (kernel?.supportsSubshells) {
        void stopRun(kernel, this.shownLive).catch(() => undefined);
      }
    });
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.model = model;
    const saved = model.data[RUN_MIME] as unknown as Saved;
    const view = model.data[WIDGET_VIEW] as { model_id?: string } | undefined;
    const id = view?.model_id ?? '';
    // The bundle is updated when the run ends; a live view of the same model knows that already.
    if (id && this.shownLive === id && this.hasComm(id)) {
      return;
    }
    this.clear();
    if (id && this.hasComm(id)) {
      await this.showLive(id, model);
      return;
    }
    this.addWidget(new SavedRun(saved));
    if (id) {
      this.timer = setInterval(() => {
        if (this.hasComm(id)) {
          this.clear();
          void this.showLive(id, model);
        }
      }, POLL_MS);
    }
  }

  dispose(): void {
    this.notebook.context.saveState.disconnect(this.beforeSave, this);
    this.clear();
    super.dispose();
  }

  /** A notebook saved in the middle of a run holds the run as it is, not as it was when the cell ended. */
  private beforeSave(_: unknown, state: string): void {
    const view = this.shownLive ? this.node.querySelector('.kf-live') : null;
    if (state !== 'started' || !view) {
      return;
    }
    const detail: { saved?: Saved } = {};
    view.dispatchEvent(new CustomEvent(PACK_EVENT, { detail }));
    if (detail.saved) {
      this.storeOutput({ [RUN_MIME]: { ...detail.saved, model_id: this.shownLive } });
    }
  }

  private storeOutput(data: Data): void {
    const model = this.model;
    const news = data[RUN_MIME] as Saved | undefined;
    const held = model?.data[RUN_MIME] as unknown as Saved | undefined;
    if (model && news && news.to > (held?.to ?? 0)) {
      model.setData({ data: { ...model.data, ...data } as never });
    }
  }

  private hasComm(id: string): boolean {
    return this.notebook.sessionContext.session?.kernel?.hasComm(id) ?? false;
  }

  private async showLive(id: string, model: IRenderMime.IMimeModel): Promise<void> {
    this.shownLive = id;
    const renderer = this.registry.createRenderer(WIDGET_VIEW);
    this.addWidget(renderer);
    await renderer.renderModel(model);
  }

  private clear(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.shownLive = '';
    for (const child of [...this.widgets]) {
      child.dispose();
    }
  }
}

class SavedRun extends Widget {
  private unmount: () => void;

  constructor(saved: Saved) {
    super();
    const store = new RunStore();
    store.apply({ ...saved, kind: 'reset' });
    this.unmount = mount(this.node, store);
  }

  dispose(): void {
    this.unmount();
    super.dispose();
  }
}
