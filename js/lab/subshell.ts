// Stop over a subshell of our own: ipykernel routes a widget's messages behind a running cell (7.4), this not.

import type { Kernel } from '@jupyterlab/services';

/** Stop the run that a widget shows, or with an empty id every run shown by the kernel. */
export async function stopRun(kernel: Kernel.IKernelConnection, model: string): Promise<void> {
  const code = `from kernelforge_lab.notebook import bundle as _kf; _kf.stop(${JSON.stringify(model)}); del _kf`;
  const request = { code, silent: true, store_history: false, stop_on_error: false };
  if (!kernel.supportsSubshells) {
    await kernel.requestExecute(request).done;
    return;
  }
  const made = await kernel.requestCreateSubshell({}).done;
  const id = made.content.subshell_id;
  const side = kernel.clone();
  try {
    side.subshellId = id;
    await side.requestExecute(request).done;
  } finally {
    side.dispose();
    void kernel.requestDeleteSubshell({ subshell_id: id }).done;
  }
}
