// A stored run in the main area: the same panel, and the source in a real editor with a merge view.

import { MainAreaWidget } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';
import { FINAL_STATES, isStock, RunStore, sourceOf } from '../core/store';
import { mount } from '../views/app';
import { h, replace, setText } from '../views/dom';
import type { RunsApi, StoredRun } from './api';
import { SourceEditor } from './editor';
import { isRunning } from './runs';

const POLL_MS = 1000;

type Against = 'nothing' | 'parent' | 'best';

export function runView(api: RunsApi, run: StoredRun): MainAreaWidget<RunView> {
  const widget = new MainAreaWidget({ content: new RunView(api, run) });
  widget.id = `kernelforge-run-${run.id}`;
  widget.title.label = run.title;
  widget.title.caption = `kernelforge run ${run.id}`;
  widget.title.closable = true;
  return widget;
}

export class RunView extends Widget {
  readonly store = new RunStore();
  private unmount: () => void = () => undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private editor = new SourceEditor();
  private against: Against = 'parent';
  private shown = '';
  private caption = h('span', 'kf-note');

  constructor(
    private api: RunsApi,
    readonly run: StoredRun
  ) {
    super();
    this.addClass('kf-runview');
    const place = h('div');
    const buttons = (['nothing', 'parent', 'best'] as Against[]).map(name =>
      h('button', { class: 'kf-link', attrs: { type: 'button', 'aria-pressed': String(name === this.against) }, on: { click: () => choose(name) } }, name)
    );
    const choose = (name: Against) => {
      this.against = name;
      buttons.forEach(b => b.setAttribute('aria-pressed', String(b.textContent === name)));
      this.showSource();
    };
    const source = h('section', { class: 'kf-root kf-source-pane', attrs: { 'aria-label': 'source of the selected kernel' } }, h('div', 'kf-panel', h('h3', 'kf-h', 'Source ', this.caption, h('span', 'kf-tools', 'against ', ...buttons)), this.editor.element));
    this.node.append(place, source);
    // Sources and prompts that were too long for the batch come from the server.
    this.store.live = true;
    this.unmount = mount(place, this.store, { want: (what, node) => void this.fetch(what, node) });
    this.store.subscribe(() => this.showSource());
    void this.load();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.editor.dispose();
    this.unmount();
    super.dispose();
  }

  private async load(): Promise<void> {
    try {
      const batch = await this.api.events(this.run.id, this.store.next);
      if (this.isDisposed) {
        return;
      }
      if (batch.events.length) {
        this.store.apply(batch);
        this.title.label = this.store.run.started?.title ?? this.title.label;
        this.run.updated_at = batch.events[batch.events.length - 1].at_s ?? this.run.updated_at;
      }
    } catch (error) {
      replace(this.node, h('div', 'kf-root', h('p', 'kf-empty', error instanceof Error ? error.message : String(error))));
      return;
    }
    if (FINAL_STATES.has(this.store.run.state)) {
      return;
    }
    if (isRunning({ ...this.run, state: this.store.run.state })) {
      this.timer = setTimeout(() => void this.load(), POLL_MS);
    } else {
      this.store.orphaned = true;
      this.store.setAnswer(null);
    }
  }

  private async fetch(what: 'source' | 'calls', node: number): Promise<void> {
    if (what === 'source') {
      this.store.setSource(node, await this.api.source(this.run.id, node));
    } else {
      this.store.setCalls(node, await this.api.calls(this.run.id, node));
    }
  }

  private showSource(): void {
    const { run, selection } = this.store;
    const node = selection.node === null ? undefined : run.nodes.get(selection.node);
    const region = run.regions.get(selection.region ?? '');
    const other = this.against === 'nothing' || !node ? null : this.against === 'parent' ? node.parent : (region?.best ?? null);
    const otherNode = other === null ? undefined : run.nodes.get(other);
    const now = node && !isStock(node) ? sourceOf(run, node) : (region?.info.text ?? '');
    const before = otherNode && !isStock(otherNode) && otherNode.id !== node?.id ? sourceOf(run, otherNode) : null;
    const key = JSON.stringify([node?.id, otherNode?.id, this.against, now.length, before?.length]);
    if (key === this.shown) {
      return;
    }
    this.shown = key;
    setText(this.caption, !node || isStock(node) ? 'what the region computes' : before === null ? `#${node.id}` : `#${otherNode!.id} → #${node.id}`);
    this.editor.show(now, before);
  }
}
