import { NotebookActions, type INotebookTracker } from '@jupyterlab/notebook';

export const COMMANDS = { forgeCell: 'kernelforge:forge-cell' } as const;

const PACKAGE = 'kernelforge_lab';

/** Put `%%forge` above the active cell (once) and run it; the magic is loaded first when needed. */
export async function forgeActiveCell(tracker: INotebookTracker): Promise<void> {
  const panel = tracker.currentWidget;
  const cell = tracker.activeCell;
  const kernel = panel?.sessionContext.session?.kernel;
  if (!panel || !cell || !kernel) {
    return;
  }
  const text = cell.model.sharedModel.getSource();
  if (!/^\s*%%forge\b/.test(text)) {
    cell.model.sharedModel.setSource(`%%forge\n${text}`);
  }
  await kernel.requestExecute({ code: `get_ipython().run_line_magic('load_ext', '${PACKAGE}')`, silent: true, store_history: false }).done;
  await NotebookActions.run(panel.content, panel.sessionContext);
}
