// The notebook behind the launcher card: from nothing to a run in four cells.

const TEXT = `# Kernelforge in four cells

Run them from the top. The search takes about a minute on a laptop's CPU; nothing is sent anywhere.`;

const MODEL = `import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up, self.gate, self.down = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(nn.functional.gelu(self.gate(h), approximate="tanh") * self.up(h))

model, x = Block().eval(), torch.randn(256, 1024)`;

const AFTER = `# Stop early or wait, then take the faster model; report it, and keep its kernels.
_forge.wait()
fast = _forge.apply()
_forge.report("report.html")`;

const code = (id: string, source: string) => ({ cell_type: 'code', id, metadata: {}, execution_count: null, outputs: [], source });

export const QUICKSTART = {
  nbformat: 4,
  nbformat_minor: 5,
  metadata: { kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' } },
  cells: [
    { cell_type: 'markdown', id: 'what', metadata: {}, source: TEXT },
    code('load', '%load_ext kernelforge_lab'),
    code('model', MODEL),
    code('forge', '%%forge --minutes 1\nwith torch.no_grad():\n    model(x)'),
    code('after', AFTER)
  ]
};
