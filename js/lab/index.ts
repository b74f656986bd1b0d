import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { RunsApi, type StoredRun } from './api';
import { COMMANDS, currentRun, exportReport, FORMATS, forgeActiveCell } from './commands';
import { compareView } from './compare';
import { RunsPanel } from './panel';
import { QUICKSTART } from './quickstart';
import { addRunRenderer } from './renderer';
import { RunList } from './runs';
import { runView } from './runview';
import { StatusItem } from './status';
import { stopRun } from './subshell';

const ID = 'kernelforge-lab:plugin';

/** Shows runs in notebooks, in a panel and in the main area; forges cells and writes reports. */
const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Runs of kernelforge: in notebooks, in a panel, in the main area; commands to forge and report.',
  autoStart: true,
  requires: [INotebookTracker],
  // Everything else is where the application has it: Notebook 7 has no shell of panels and no launcher.
  optional: [ICommandPalette, ILabShell, ILayoutRestorer, ILauncher, ISettingRegistry, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    palette: ICommandPalette | null,
    lab: ILabShell | null,
    restorer: ILayoutRestorer | null,
    launcher: ILauncher | null,
    settings: ISettingRegistry | null,
    statusBar: IStatusBar | null
  ) => {
    const { commands, shell } = app;
    const list = new RunList(new RunsApi(app.serviceManager.serverSettings));
    let options = '';

    tracker.widgetAdded.connect((_, panel) => addRunRenderer(panel));
    tracker.forEach(addRunRenderer);

    const show = (widget: ReturnType<typeof runView> | ReturnType<typeof compareView>) => {
      const open = [...shell.widgets('main')].find(w => w.id === widget.id);
      if (open) {
        widget.dispose();
      } else {
        shell.add(widget, 'main');
      }
      shell.activateById(widget.id);
    };
    const open = (run: StoredRun) => show(runView(list.api, { ...run }));
    const compare = (runs: StoredRun[]) => show(compareView(list.api, runs));
    const failed = (error: unknown) => void Notification.error(error instanceof Error ? error.message : String(error));
    const named = (id: string): StoredRun =>
      list.runs.find(run => run.id === id) ?? { id, title: id, target: '', state: '', started_at: 0, updated_at: Date.now() / 1000, best: '', ceiling: null, judged: 0, spent_usd: 0, message: '' };
    const byId = async (id: unknown) => (await list.refresh(), list.runs.find(run => run.id === id));

    commands.addCommand(COMMANDS.forgeCell, {
      label: 'Forge This Cell',
      caption: 'Run this cell under %%forge: find faster kernels for the model it calls',
      isEnabled: () => tracker.activeCell?.model.type === 'code',
      execute: () => forgeActiveCell(tracker, options)
    });
    commands.addCommand(COMMANDS.exportReport, {
      label: args => (FORMATS.includes(args.format as never) ? `Export the Report (.${args.format as string})` : 'Export the Report'),
      caption: 'Write the report of this notebook’s newest run beside the notebook',
      execute: async args => exportReport(app, list, tracker.currentWidget, (args.format as string) ?? 'html', args.run ? await byId(args.run) : undefined).catch(failed)
    });
    commands.addCommand(COMMANDS.stop, {
      label: 'Stop the Runs of This Kernel',
      caption: 'Also while a cell is running; what was found is kept',
      isEnabled: () => tracker.currentWidget?.sessionContext.session?.kernel !== undefined,
      execute: async () => {
        const kernel = tracker.currentWidget?.sessionContext.session?.kernel;
        if (kernel) {
          await stopRun(kernel, '');
        }
      }
    });
    commands.addCommand(COMMANDS.openRun, {
      label: 'Open the Newest Run',
      caption: 'In the main area, with its sources in an editor',
      execute: async args => {
        // Named, it needs no list: its events say all there is to know.
        const run = typeof args.run === 'string' ? named(args.run) : await currentRun(list, tracker.currentWidget);
        if (run) {
          open(run);
        } else {
          Notification.info(list.trouble || 'There is no run yet.');
        }
      }
    });
    commands.addCommand(COMMANDS.compareRuns, {
      label: 'Compare the Two Newest Runs',
      execute: async () => {
        await list.refresh();
        if (list.runs.length >= 2) {
          compare(list.runs.slice(0, 2));
        } else {
          Notification.info(list.trouble || 'There are no two runs to compare yet.');
        }
      }
    });
    commands.addCommand(COMMANDS.quickstart, {
      label: args => (args.isPalette ? 'New Quickstart Notebook' : 'Kernelforge quickstart'),
      caption: 'A notebook that forges a small model in four cells',
      iconClass: 'kf-tab-icon',
      execute: async args => {
        const { contents } = app.serviceManager;
        const made = await contents.newUntitled({ path: (args.cwd as string) ?? '', type: 'notebook' });
        await contents.save(made.path, { type: 'notebook', format: 'json', content: QUICKSTART });
        return commands.execute('docmanager:open', { path: made.path, factory: 'Notebook' });
      }
    });

    let panel: RunsPanel | null = null;
    if (lab) {
      panel = new RunsPanel(list, tracker, { open, compare, report: run => void exportReport(app, list, tracker.currentWidget, 'html', run).catch(failed) });
      lab.add(panel, 'left', { rank: 700 });
      restorer?.add(panel, panel.id);
      const { id } = panel;
      commands.addCommand(COMMANDS.showRuns, { label: 'Show Runs', caption: 'The panel of runs', execute: () => lab.activateById(id) });
    }
    let status: StatusItem | null = null;
    if (statusBar && lab) {
      status = new StatusItem(list, () => void commands.execute(COMMANDS.showRuns));
      statusBar.registerStatusItem('kernelforge-lab:status', { item: status, align: 'left', rank: 900 });
    }
    if (palette) {
      const category = 'Kernelforge';
      palette.addItem({ command: COMMANDS.forgeCell, category });
      FORMATS.forEach(format => palette.addItem({ command: COMMANDS.exportReport, category, args: { format } }));
      palette.addItem({ command: COMMANDS.stop, category });
      palette.addItem({ command: COMMANDS.openRun, category });
      palette.addItem({ command: COMMANDS.compareRuns, category });
      palette.addItem({ command: COMMANDS.quickstart, category, args: { isPalette: true } });
      if (lab) {
        palette.addItem({ command: COMMANDS.showRuns, category });
      }
    }
    launcher?.add({ command: COMMANDS.quickstart, category: 'Other', rank: 50 });

    const read = (found: ISettingRegistry.ISettings) => {
      options = found.get('forgeOptions').composite as string;
      list.pollMs = 1000 * (found.get('refreshSeconds').composite as number);
      if (panel) {
        panel.confirmDelete = found.get('confirmDelete').composite as boolean;
      }
      if (status) {
        status.shown = found.get('showStatus').composite as boolean;
        status.draw();
      }
    };
    void settings
      ?.load(ID)
      .then(found => {
        read(found);
        found.changed.connect(read);
      })
      .catch(() => undefined);
  }
};

export default plugin;
