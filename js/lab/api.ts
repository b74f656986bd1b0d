// What the server tells of stored runs. Without our server extension there is simply no answer.

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Batch, ModelCalled } from '../core/protocol';

export interface StoredRun {
  id: string;
  title: string;
  target: string;
  state: string;
  started_at: number;
  updated_at: number;
  /** How good it is, in words: `1.34× (1.31–1.36)`, `no gain yet`. */
  best: string;
  ceiling: number | null;
  judged: number;
  spent_usd: number;
  message: string;
}

export class NoServer extends Error {}

export class RunsApi {
  constructor(private settings: ServerConnection.ISettings) {}

  list(): Promise<StoredRun[]> {
    return this.ask<StoredRun[]>('');
  }

  events(run: string, after = 0): Promise<Batch> {
    return this.ask<Batch>(`/${encodeURIComponent(run)}?after=${after}`);
  }

  async source(run: string, node: number): Promise<string> {
    return (await this.ask<{ source: string }>(`/${encodeURIComponent(run)}/nodes/${node}/source`)).source;
  }

  async calls(run: string, node: number): Promise<ModelCalled[]> {
    return (await this.ask<{ calls: ModelCalled[] }>(`/${encodeURIComponent(run)}/nodes/${node}/calls`)).calls;
  }

  async report(run: string, format: string): Promise<string> {
    return (await this.ask<{ text: string }>(`/${encodeURIComponent(run)}/report?format=${format}`)).text;
  }

  async remove(run: string): Promise<void> {
    await this.ask(`/${encodeURIComponent(run)}`, 'DELETE');
  }

  private async ask<T>(path: string, method = 'GET'): Promise<T> {
    const url = URLExt.join(this.settings.baseUrl, 'kernelforge', 'runs') + path;
    const response = await ServerConnection.makeRequest(url, { method }, this.settings);
    if (response.status === 404 && !path) {
      throw new NoServer('kernelforge-lab is not installed where the Jupyter server runs.');
    }
    if (!response.ok) {
      throw new Error(response.statusText || `the server answered ${response.status}`);
    }
    return (response.status === 204 ? null : await response.json()) as T;
  }
}
