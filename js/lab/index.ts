import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { COMMANDS, forgeActiveCell } from './commands';
import { addRunRenderer } from './renderer';

/** Shows saved runs in notebooks and puts "Forge this cell" into palette and toolbars. */
const plugin: JupyterFrontEndPlugin<void> = {
  id: 'kernelforge-lab:plugin',
  description: 'Shows kernelforge runs of saved notebooks and forges the active cell.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (app: JupyterFrontEnd, tracker: INotebookTracker) => {
    tracker.widgetAdded.connect((_, panel) => addRunRenderer(panel));
    tracker.forEach(addRunRenderer);
    app.commands.addCommand(COMMANDS.forgeCell, {
      label: 'Forge This Cell',
      caption: 'Run this cell under %%forge: find faster kernels for the model it calls',
      isEnabled: () => tracker.activeCell?.model.type === 'code',
      execute: () => forgeActiveCell(tracker)
    });
  }
};

export default plugin;
