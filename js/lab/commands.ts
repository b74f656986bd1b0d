// Everything the palette, toolbars, panel and launcher can ask for.

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { NotebookActions, type INotebookTracker, type NotebookPanel } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import type { StoredRun } from './api';
import { runsOf } from './panel';
import type { RunList } from './runs';

export const COMMANDS = {
  forgeCell: 'kernelforge:forge-cell',
  exportReport: 'kernelforge:export-report',
  stop: 'kernelforge:stop',
  openRun: 'kernelforge:open-run',
  compareRuns: 'kernelforge:compare-runs',
  showRuns: 'kernelforge:show-runs',
  quickstart: 'kernelforge:quickstart'
} as const;

export const FORMATS = ['html', 'ipynb', 'md'] as const;
const PACKAGE = 'kernelforge_lab';

/** Put `%%forge` above the active cell (once) and run it; the magic is loaded first when needed. */
export async function forgeActiveCell(tracker: INotebookTracker, options: string): Promise<void> {
  const panel = tracker.currentWidget;
  const cell = tracker.activeCell;
  const kernel = panel?.sessionContext.session?.kernel;
  if (!panel || !cell || !kernel) {
    return;
  }
  const text = cell.model.sharedModel.getSource();
  if (!/^\s*%%forge\b/.test(text)) {
    cell.model.sharedModel.setSource(`${`%%forge ${options}`.trim()}\n${text}`);
  }
  const code = `get_ipython().run_line_magic('load_ext', '${PACKAGE}')`;
  const reply = await kernel.requestExecute({ code, silent: true, store_history: false }).done;
  if (reply.content.status === 'error') {
    Notification.warning(`This notebook's kernel has no ${PACKAGE}: pip install kernelforge-lab there.`);
    return;
  }
  await NotebookActions.run(panel.content, panel.sessionContext);
}

/** The run a person means: the newest of this notebook that is in the store, else the newest stored. */
export async function currentRun(list: RunList, notebook: NotebookPanel | null): Promise<StoredRun | undefined> {
  await list.refresh();
  const here = runsOf(notebook);
  return list.runs.find(run => here.has(run.id)) ?? list.runs[0];
}

/** Write a report beside the notebook, from the store: no kernel is asked. Returns its path. */
export async function exportReport(app: JupyterFrontEnd, list: RunList, notebook: NotebookPanel | null, format: string, run?: StoredRun): Promise<string> {
  const wanted = run ?? (await currentRun(list, notebook));
  if (!wanted) {
    Notification.info(list.trouble || 'There is no run to report on yet.');
    return '';
  }
  const text = await list.api.report(wanted.id, format);
  const name = `${wanted.title.replace(/[^\w.-]+/g, '-').replace(/^-|-$/g, '') || 'forge'}-${wanted.id}.${format}`;
  const path = PathExt.join(notebook ? PathExt.dirname(notebook.context.path) : '', name);
  const model: Partial<Contents.IModel> = format === 'ipynb' ? { type: 'notebook', format: 'json', content: JSON.parse(text) } : { type: 'file', format: 'text', content: text };
  await app.serviceManager.contents.save(path, model);
  Notification.success(`Report written to ${path}`, {
    autoClose: 8000,
    actions: [{ label: 'Open', callback: () => void app.commands.execute('docmanager:open', { path }) }]
  });
  return path;
}
