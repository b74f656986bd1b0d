// Our own MIME type: a saved notebook shows the stored run at once, and the live view replaces it when
// the kernel that made it is still there. ipywidgets alone would show "model not found".

import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel, Widget } from '@lumino/widgets';
import type { Saved } from '../core/protocol';
import { RunStore } from '../core/store';
import { mount } from '../views/app';

export const RUN_MIME = 'application/vnd.kernelforge.run.v1+json';
const WIDGET_VIEW = 'application/vnd.jupyter.widget-view+json';
/** Before ipywidgets' renderer, which sits at −10 and claims the bundle otherwise. */
const RANK = -20;
const POLL_MS = 250;

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

  constructor(
    private notebook: NotebookPanel,
    private registry: IRenderMimeRegistry
  ) {
    super();
    this.addClass('kf-output');
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
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
    this.clear();
    super.dispose();
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
