"use strict";(self.rspackChunkkernelforge_lab=self.rspackChunkkernelforge_lab||[]).push([[212],{23(e,o,r){var t=r(24),a=r.n(t),f=r(25),n=r.n(f),i=r(26),d=r.n(i),p=r(27),l=r.n(p),s=r(28),k=r.n(s),c=r(29),g=r.n(c),x=r(30),u={};u.styleTagTransform=g(),u.setAttributes=l(),u.insert=d().bind(null,"head"),u.domAPI=n(),u.insertStyleElement=k(),a()(x.A,u),x.A&&x.A.locals&&x.A.locals;var h=r(33),b={};b.styleTagTransform=g(),b.setAttributes=l(),b.insert=d().bind(null,"head"),b.domAPI=n(),b.insertStyleElement=k(),a()(h.A,b),h.A&&h.A.locals&&h.A.locals},30(e,o,r){var t=r(31),a=r.n(t),f=r(32),n=(r.n(f))()(a());n.push([e.id,`/* Everything is scoped under .kf-root. Colours come from JupyterLab where it is, else from the system. */

.kf-root {
  --kf-bg: var(--jp-layout-color1, #fff);
  --kf-bg2: color-mix(in srgb, var(--kf-bg) 95%, var(--kf-fg));
  --kf-fg: var(--jp-ui-font-color1, #1d2125);
  --kf-fg2: #59626b;
  --kf-line: #aeb6bd;
  --kf-grid: #e6e9ec;
  --kf-border: var(--jp-border-color2, #dadee2);
  --kf-focus: var(--jp-brand-color1, #1769aa);
  --kf-good: #00805c;
  --kf-good-soft: #cfe9df;
  --kf-bad: #c04000;
  --kf-bad-soft: #fbe3d6;
  --kf-star: #b8790b;
  --kf-stock: #6b747c;
  --kf-templates: #0072b2;
  --kf-llm: #d47f00;
  --kf-human: #a4458a;
  --kf-replay: #3a8fc2;
  --kf-possible: #8fcdb5;
  --kf-share: #d3d9de;
  --kf-t-comment: #5d6770;
  --kf-t-forge: #8a3b78;
  --kf-t-keyword: #0b5c94;
  --kf-t-type: #00705a;
  --kf-t-number: #a14d00;
  --kf-mono: var(--jp-code-font-family, ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', monospace);
  container-type: inline-size;
  color: var(--kf-fg);
  font: 13px/1.45 var(--jp-ui-font-family, system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif);
  font-variant-numeric: tabular-nums;
  text-align: left;
}

@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light]) .kf-root {
    --kf-bg: #16191c;
    --kf-fg: #e4e8eb;
    --kf-border: #353b41;
  }
}

/* The dark half of the palette: lighter hues of the same Okabe–Ito names, 4.5:1 on the dark ground. */
body[data-jp-theme-light='false'] .kf-root {
  --kf-fg2: #a7b0b8;
  --kf-line: #5d666e;
  --kf-grid: #2c3136;
  --kf-focus: #6fb7ee;
  --kf-good: #2fbd90;
  --kf-good-soft: #1d4a3c;
  --kf-bad: #f0824a;
  --kf-bad-soft: #4d2a1a;
  --kf-star: #f0b93a;
  --kf-stock: #98a2ab;
  --kf-templates: #56b4e9;
  --kf-llm: #f2ac33;
  --kf-human: #dd94c0;
  --kf-replay: #9fd3f2;
  --kf-possible: #2a6650;
  --kf-share: #40474e;
  --kf-t-comment: #949ea7;
  --kf-t-forge: #dd94c0;
  --kf-t-keyword: #7cc0f0;
  --kf-t-type: #5fd0ae;
  --kf-t-number: #efb073;
}

@media (prefers-color-scheme: dark) {
  body:not([data-jp-theme-light]) .kf-root {
    --kf-fg2: #a7b0b8;
    --kf-line: #5d666e;
    --kf-grid: #2c3136;
    --kf-focus: #6fb7ee;
    --kf-good: #2fbd90;
    --kf-good-soft: #1d4a3c;
    --kf-bad: #f0824a;
    --kf-bad-soft: #4d2a1a;
    --kf-star: #f0b93a;
    --kf-stock: #98a2ab;
    --kf-templates: #56b4e9;
    --kf-llm: #f2ac33;
    --kf-human: #dd94c0;
    --kf-replay: #9fd3f2;
    --kf-possible: #2a6650;
    --kf-share: #40474e;
    --kf-t-comment: #949ea7;
    --kf-t-forge: #dd94c0;
    --kf-t-keyword: #7cc0f0;
    --kf-t-type: #5fd0ae;
    --kf-t-number: #efb073;
  }
}

.kf-root *,
.kf-root *::before {
  box-sizing: border-box;
}

.kf-root [hidden] {
  display: none !important;
}

.kf-panel {
  border: 1px solid var(--kf-border);
  border-radius: 8px;
  background: var(--kf-bg);
  overflow: hidden;
}

.kf-root :focus-visible {
  outline: 2px solid var(--kf-focus);
  outline-offset: -2px;
}

.kf-sr {
  position: absolute;
  width: 1px;
  height: 1px;
  margin: -1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}

/* ---- header ---- */
.kf-header {
  padding: 9px 14px 8px;
  border-bottom: 1px solid var(--kf-border);
  background: var(--kf-bg2);
}

.kf-headline {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 6px 18px;
}

.kf-name {
  display: flex;
  flex: 1 1 150px;
  align-items: baseline;
  gap: 8px;
  min-width: 0;
  white-space: nowrap;
}

.kf-title {
  font-weight: 650;
  overflow: hidden;
  text-overflow: ellipsis;
}

.kf-where {
  flex: 1 1 0;
  min-width: 0;
  color: var(--kf-fg2);
  overflow: hidden;
  text-overflow: ellipsis;
}

.kf-how-far,
.kf-how-good {
  display: flex;
  align-items: center;
  gap: 8px;
  white-space: nowrap;
}

.kf-how-good {
  align-items: baseline;
}

.kf-far,
.kf-note {
  color: var(--kf-fg2);
  font-weight: 400;
}

.kf-state,
.kf-run-state {
  padding: 0 8px;
  border: 1px solid var(--kf-border);
  border-radius: 9px;
  background: var(--kf-bg);
  font-size: 12px;
  line-height: 18px;
}

.kf-state[data-state='finished'],
.kf-run-state[data-state='finished'] {
  border-color: var(--kf-good);
  color: var(--kf-good);
}

.kf-state[data-state='failed'],
.kf-run-state[data-state='failed'],
.kf-run-state[data-state='gone'],
.kf-state[data-state='gone'] {
  border-color: var(--kf-bad);
  color: var(--kf-bad);
}

.kf-bar {
  display: inline-block;
  width: 96px;
  height: 7px;
  border-radius: 4px;
  background: var(--kf-share);
  overflow: hidden;
}

.kf-bar-fill {
  display: block;
  height: 100%;
  background: var(--kf-focus);
  transition: width 0.3s;
}

.kf-best {
  font-size: 19px;
  font-weight: 650;
  line-height: 24px;
}

.kf-best.kf-quiet {
  color: var(--kf-fg2);
  font-size: 14px;
  font-weight: 500;
}

.kf-spent {
  white-space: nowrap;
}

.kf-buttons {
  display: flex;
  gap: 6px;
}

.kf-doing {
  margin-top: 3px;
  color: var(--kf-fg2);
  font-size: 12px;
}

.kf-button {
  padding: 2px 10px;
  border: 1px solid var(--kf-border);
  border-radius: 5px;
  background: var(--kf-bg);
  color: var(--kf-fg);
  font: inherit;
  font-size: 12px;
  line-height: 18px;
  cursor: pointer;
}

.kf-button:hover:not(:disabled) {
  background: var(--kf-bg2);
  border-color: var(--kf-fg2);
}

.kf-button:disabled {
  color: var(--kf-fg2);
  cursor: default;
}

.kf-small {
  padding: 0 7px;
  font-size: 11.5px;
}

.kf-link {
  padding: 0 3px;
  border: 0;
  background: none;
  color: var(--kf-fg2);
  font: inherit;
  text-decoration: underline;
  text-decoration-color: transparent;
  cursor: pointer;
}

.kf-link:hover {
  text-decoration-color: currentColor;
}

.kf-link[aria-pressed='true'] {
  color: var(--kf-fg);
  font-weight: 600;
  text-decoration-color: var(--kf-focus);
}

@container (max-width: 899px) {
  .kf-how-far {
    order: 1;
  }
  .kf-buttons {
    order: 2;
  }
  .kf-how-good {
    order: 3;
    flex: 1 1 60%;
  }
  .kf-spent {
    order: 4;
  }
}

/* ---- layout: one column, two from 620 px, three from 1080 px ---- */
.kf-main {
  display: grid;
  grid-template-columns: minmax(0, 1fr);
}

.kf-h {
  display: flex;
  align-items: baseline;
  gap: 6px;
  margin: 0;
  padding: 8px 14px 4px;
  font-size: 12px;
  font-weight: 650;
  line-height: 20px;
}

.kf-tools {
  display: flex;
  flex: none;
  gap: 4px;
  margin-left: auto;
  color: var(--kf-fg2);
  font-weight: 400;
}

.kf-regions,
.kf-tree,
.kf-node {
  display: flex;
  flex-direction: column;
  min-width: 0;
  height: 340px;
}

.kf-tree,
.kf-node {
  border-top: 1px solid var(--kf-border);
}

@container (min-width: 620px) {
  .kf-main {
    grid-template-columns: minmax(230px, 38fr) minmax(0, 62fr);
  }
  .kf-tree {
    border-top: 0;
    border-left: 1px solid var(--kf-border);
  }
  .kf-node {
    grid-column: 1 / -1;
  }
}

@container (min-width: 1080px) {
  .kf-main {
    grid-template-columns: minmax(270px, 26fr) minmax(0, 38fr) minmax(0, 40fr);
  }
  .kf-regions,
  .kf-tree,
  .kf-node {
    height: 430px;
  }
  .kf-node {
    grid-column: auto;
    border-top: 0;
    border-left: 1px solid var(--kf-border);
  }
}

/* ---- regions ---- */
.kf-region-list {
  flex: 1;
  overflow: auto;
  scrollbar-width: thin;
}

.kf-region {
  padding: 4px 14px 6px;
  border-left: 3px solid transparent;
  cursor: pointer;
}

.kf-region:hover {
  background: var(--kf-bg2);
}

.kf-region[aria-selected='true'] {
  border-left-color: var(--kf-focus);
  background: var(--kf-bg2);
}

.kf-region-line {
  display: flex;
  align-items: baseline;
  gap: 6px;
}

.kf-mark {
  flex: none;
  width: 11px;
  color: var(--kf-fg2);
}

.kf-region[data-state='searching'] .kf-mark {
  color: var(--kf-focus);
}

.kf-region[data-state='done'] .kf-mark {
  color: var(--kf-good);
}

.kf-region-title {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.kf-count {
  flex: none;
  color: var(--kf-fg2);
}

.kf-percent {
  flex: none;
  margin-left: auto;
  font-weight: 600;
}

.kf-share-track {
  height: 8px;
  margin: 2px 0 1px 17px;
}

.kf-share {
  display: flex;
  height: 8px;
  min-width: 2px;
  border-radius: 2px;
  background: var(--kf-share);
  overflow: hidden;
}

.kf-share-gained {
  background: var(--kf-good);
}

.kf-share-possible {
  border: 1px solid var(--kf-good);
  background: var(--kf-bg);
}

.kf-region-detail {
  margin-left: 17px;
  color: var(--kf-fg2);
  font-size: 11.5px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.kf-vendor {
  color: var(--kf-fg2);
  cursor: default;
}

.kf-vendor .kf-percent {
  font-weight: 400;
}

.kf-vendor .kf-share {
  opacity: 0.7;
}

.kf-legend {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 2px 10px;
  padding: 4px 14px 7px;
  color: var(--kf-fg2);
  font-size: 11px;
}

.kf-key {
  display: inline-block;
  width: 14px;
  height: 8px;
  border-radius: 2px;
  background: var(--kf-share);
}

.kf-key-gained {
  background: var(--kf-good);
}

.kf-key-possible {
  border: 1px solid var(--kf-good);
  background: var(--kf-bg);
}

.kf-good {
  color: var(--kf-good);
}

.kf-bad {
  color: var(--kf-bad);
}

.kf-star {
  color: var(--kf-star);
}

.kf-empty {
  margin: 0;
  padding: 8px 14px;
  color: var(--kf-fg2);
}

/* ---- tree and charts ---- */
.kf-stage,
.kf-chart-stage {
  position: relative;
  flex: 1;
  min-height: 0;
  overflow: hidden;
}

.kf-stage canvas,
.kf-chart-stage canvas {
  display: block;
  width: 100%;
  height: 100%;
}

.kf-stage canvas {
  cursor: grab;
  touch-action: none;
}

.kf-tree-region {
  flex: 1 1 auto;
  min-width: 0;
  color: var(--kf-fg2);
  font-weight: 400;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.kf-hover {
  position: absolute;
  right: 8px;
  bottom: 6px;
  left: 8px;
  padding: 2px 8px;
  border: 1px solid var(--kf-border);
  border-radius: 4px;
  background: var(--kf-bg);
  font-size: 12px;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
  pointer-events: none;
}

.kf-charts {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr));
  border-top: 1px solid var(--kf-border);
}

.kf-chart {
  display: flex;
  flex-direction: column;
  min-width: 0;
  height: 240px;
}

.kf-chart + .kf-chart {
  border-left: 1px solid var(--kf-border);
}

/* ---- node ---- */
.kf-sentence {
  margin: 0;
  padding: 0 14px 2px;
  overflow-wrap: anywhere;
}

.kf-sentence[data-outcome='faster'] {
  color: var(--kf-good);
  font-weight: 600;
}

.kf-sentence[data-outcome='failed'] {
  max-height: 6.4em;
  color: var(--kf-bad);
  overflow: auto;
}

.kf-idea {
  margin: 0;
  padding: 0 14px;
  color: var(--kf-fg2);
  font-size: 12px;
}

.kf-tabs {
  display: flex;
  gap: 2px;
  padding: 6px 14px 0;
  border-bottom: 1px solid var(--kf-border);
}

.kf-tabs .kf-small {
  align-self: center;
  margin: 0 0 4px auto;
}

.kf-tab {
  padding: 3px 10px;
  border: 0;
  border-bottom: 2px solid transparent;
  background: none;
  color: var(--kf-fg2);
  font: inherit;
  font-size: 12px;
  cursor: pointer;
}

.kf-tab[aria-selected='true'] {
  border-bottom-color: var(--kf-focus);
  color: var(--kf-fg);
  font-weight: 600;
}

.kf-tab-body {
  flex: 1;
  min-height: 0;
  overflow: auto;
  scrollbar-width: thin;
}

.kf-code {
  width: max-content;
  min-width: 100%;
  padding: 6px 0;
  font: 12px/1.5 var(--kf-mono);
  tab-size: 4;
}

.kf-code-line {
  display: flex;
  white-space: pre;
}

.kf-lineno::before {
  content: attr(data-n);
  display: inline-block;
  width: 40px;
  padding-right: 12px;
  color: var(--kf-fg2);
  text-align: right;
  user-select: none;
}

.kf-code-text {
  padding-right: 14px;
}

.kf-sign {
  width: 14px;
  user-select: none;
}

.kf-added {
  background: var(--kf-good-soft);
}

.kf-removed {
  background: var(--kf-bad-soft);
}

.kf-fold,
.kf-against {
  padding: 2px 14px;
  color: var(--kf-fg2);
  font-size: 12px;
}

.kf-t-comment {
  color: var(--kf-t-comment);
  font-style: italic;
}

.kf-t-forge,
.kf-t-directive {
  color: var(--kf-t-forge);
}

.kf-t-keyword {
  color: var(--kf-t-keyword);
}

.kf-t-type {
  color: var(--kf-t-type);
}

.kf-t-number,
.kf-t-string {
  color: var(--kf-t-number);
}

.kf-facts {
  margin: 6px 14px !important;
  border-collapse: collapse;
  font-size: 12px;
}

.kf-facts th,
.kf-facts td {
  padding: 2px 16px 2px 0;
  border: 0;
  background: none;
  font-weight: 400;
  text-align: left;
  vertical-align: top;
}

.kf-facts th {
  color: var(--kf-fg2);
  white-space: nowrap;
}

.kf-evidence {
  margin: 8px 14px;
  padding: 6px 10px;
  border-left: 3px solid var(--kf-bad);
  background: var(--kf-bg2);
  color: var(--kf-fg);
  font: 12px/1.45 var(--kf-mono);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}

.kf-log > div {
  padding: 3px 14px;
  border-top: 1px solid var(--kf-border);
  color: var(--kf-fg2);
  font-size: 12px;
}

.kf-log > .kf-log-error {
  color: var(--kf-bad);
}

@media (prefers-reduced-motion: reduce) {
  .kf-bar-fill {
    transition: none;
  }
}

@media print {
  .kf-buttons,
  .kf-tools {
    display: none !important;
  }
  .kf-panel {
    overflow: visible;
  }
  .kf-regions,
  .kf-node {
    height: auto;
  }
}

/* ---- what a person types and clicks ---- */
.kf-input {
  min-width: 0;
  padding: 1px 6px;
  border: 1px solid var(--kf-border);
  border-radius: 5px;
  background: var(--kf-bg);
  color: var(--kf-fg);
  font: inherit;
  font-size: 12px;
  line-height: 18px;
}

.kf-input::placeholder {
  color: var(--kf-fg2);
  opacity: 1;
}

.kf-input[type='number'] {
  width: 62px;
}

.kf-form {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 6px 12px;
  padding: 6px 0 2px;
}

.kf-node .kf-form {
  padding: 0 14px 6px;
}

.kf-field {
  color: var(--kf-fg2);
  font-size: 12px;
  white-space: nowrap;
}

.kf-actions {
  display: flex;
  flex-wrap: wrap;
  align-items: center;
  gap: 6px;
  padding: 0 14px 6px;
}

.kf-hint {
  flex: 1 1 160px;
}

.kf-edit {
  display: flex;
  flex-direction: column;
  gap: 6px;
  height: 100%;
  padding-top: 2px;
}

.kf-editor {
  flex: 1;
  min-height: 120px;
  margin: 0 14px;
  padding: 6px 8px;
  border: 1px solid var(--kf-border);
  border-radius: 5px;
  background: var(--kf-bg);
  color: var(--kf-fg);
  font: 12px/1.5 var(--kf-mono);
  tab-size: 4;
  resize: none;
}

.kf-find {
  display: flex;
  align-items: center;
  gap: 8px;
  padding: 0 14px 4px;
}

.kf-find-words {
  flex: 1 1 60px;
  max-width: 240px;
}

.kf-find .kf-link {
  margin-left: auto;
}

.kf-found {
  flex: 1;
  min-height: 0;
  overflow: auto;
  scrollbar-width: thin;
}

.kf-found-row {
  display: flex;
  gap: 6px;
  padding: 3px 14px;
  border-left: 3px solid transparent;
  cursor: pointer;
}

.kf-found-row:hover,
.kf-found-row[aria-selected='true'] {
  background: var(--kf-bg2);
}

.kf-found-row[aria-selected='true'] {
  border-left-color: var(--kf-focus);
}

.kf-found-id {
  flex: none;
  min-width: 34px;
  color: var(--kf-fg2);
}

.kf-found-text {
  min-width: 0;
}

.kf-found-why {
  display: block;
  color: var(--kf-fg2);
  font-size: 12px;
  overflow-wrap: anywhere;
}

.kf-found-row[data-outcome='failed'] .kf-found-why {
  color: var(--kf-bad);
}

.kf-found-row[data-outcome='faster'] .kf-found-why {
  color: var(--kf-good);
}

.kf-h4 {
  margin: 4px 14px;
  font-size: 12px;
  font-weight: 600;
}

.kf-call summary {
  padding: 2px 14px;
  color: var(--kf-fg2);
  font-size: 12px;
  cursor: pointer;
}

.kf-text {
  max-height: 320px;
  margin: 0 14px 6px;
  padding: 6px 8px;
  overflow: auto;
  border: 1px solid var(--kf-border);
  border-radius: 5px;
  background: var(--kf-bg2);
  color: var(--kf-fg);
  font: 12px/1.5 var(--kf-mono);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}

.kf-capture-notes:not(:empty) {
  flex: none;
  max-height: 30%;
  overflow: auto;
}

.kf-log-info {
  color: var(--kf-fg2);
}

/* A person's own height for the main part; where it is one row, its sections follow. */
@container (min-width: 1080px) {
  .kf-main {
    height: 430px;
    min-height: 300px;
    overflow: hidden;
    resize: vertical;
  }
  .kf-regions,
  .kf-tree,
  .kf-node {
    height: auto;
    min-height: 0;
  }
}

@media print {
  .kf-buttons,
  .kf-actions,
  .kf-find,
  .kf-tools {
    display: none !important;
  }
}
`,""]),r.d(o,{},{A:n})},33(e,o,r){var t=r(31),a=r.n(t),f=r(32),n=r.n(f),i=r(34),d=r.n(i),p=new URL(r(35),r.b),l=n()(a()),s=d()(p);l.push([e.id,`/* JupyterLab only: panel, main-area views, status bar. */

.kf-tab-icon {
  width: 16px;
  height: 16px;
  background: currentcolor;
  mask: url(${s}) center / contain no-repeat;
}

.jp-SideBar .kf-tab-icon {
  width: 20px;
  height: 20px;
}

.kf-runs,
.kf-runview,
.kf-compare {
  overflow: auto;
  background: var(--jp-layout-color1);
}

.kf-runs-head {
  display: flex;
  align-items: center;
  gap: 6px;
  padding: 8px 12px;
  border-bottom: 1px solid var(--kf-border);
}

.kf-runs-title {
  flex: 1;
  margin: 0;
  font-size: 13px;
  font-weight: 650;
}

.kf-runs-group {
  margin: 10px 12px 2px;
  color: var(--kf-fg2);
  font-size: 12px;
  font-weight: 600;
}

.kf-runs-list {
  margin: 0;
  padding: 0;
  list-style: none;
}

.kf-run-row {
  padding: 7px 12px 8px;
  border-bottom: 1px solid var(--kf-border);
}

.kf-run-line {
  display: flex;
  align-items: center;
  gap: 6px;
}

.kf-run-line input {
  margin: 0;
}

.kf-run-name {
  flex: 1;
  min-width: 0;
  overflow: hidden;
  font-weight: 600;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.kf-run-best {
  margin-top: 2px;
}

.kf-run-facts {
  color: var(--kf-fg2);
  font-size: 12px;
}

.kf-run-buttons {
  display: flex;
  gap: 6px;
  margin-top: 5px;
}

.kf-runview,
.kf-compare {
  padding: 10px;
}

.kf-source-pane {
  margin-top: 10px;
}

.kf-cm {
  max-height: 60vh;
  overflow: auto;
  font-size: 12px;
}

.kf-cm .cm-editor {
  background: var(--kf-bg);
  color: var(--kf-fg);
}

.kf-cm .cm-gutters {
  border: 0;
  background: var(--kf-bg2);
  color: var(--kf-fg2);
}

.kf-cm .cm-collapsedLines {
  background: var(--kf-bg2);
  color: var(--kf-fg2);
}

.kf-compare-title {
  padding: 10px 14px;
}

.kf-compare-table {
  margin-bottom: 10px;
}

.kf-compare-table td,
.kf-compare-table th {
  padding-right: 24px;
}

.kf-status {
  height: 100%;
  padding: 0 8px;
  border: 0;
  background: none;
  color: inherit;
  font: inherit;
  font-variant-numeric: tabular-nums;
  cursor: pointer;
}

.kf-status:hover {
  background: var(--jp-layout-color2);
}
`,""]),r.d(o,{},{A:l})},32(e){e.exports=function(e){var o=[];return o.toString=function(){return this.map(function(o){var r="",t=void 0!==o[5];return o[4]&&(r+="@supports (".concat(o[4],") {")),o[2]&&(r+="@media ".concat(o[2]," {")),t&&(r+="@layer".concat(o[5].length>0?" ".concat(o[5]):""," {")),r+=e(o),t&&(r+="}"),o[2]&&(r+="}"),o[4]&&(r+="}"),r}).join("")},o.i=function(e,r,t,a,f){"string"==typeof e&&(e=[[null,e,void 0]]);var n={};if(t)for(var i=0;i<this.length;i++){var d=this[i][0];null!=d&&(n[d]=!0)}for(var p=0;p<e.length;p++){var l=[].concat(e[p]);t&&n[l[0]]||(void 0!==f&&(void 0===l[5]||(l[1]="@layer".concat(l[5].length>0?" ".concat(l[5]):""," {").concat(l[1],"}")),l[5]=f),r&&(l[2]&&(l[1]="@media ".concat(l[2]," {").concat(l[1],"}")),l[2]=r),a&&(l[4]?(l[1]="@supports (".concat(l[4],") {").concat(l[1],"}"),l[4]=a):l[4]="".concat(a)),o.push(l))}},o}},34(e){e.exports=function(e,o){return(o||(o={}),e&&(e=String(e.__esModule?e.default:e),/^['"].*['"]$/.test(e)&&(e=e.slice(1,-1)),o.hash&&(e+=o.hash),/["'() \t\n]|(%20)/.test(e)||o.needQuotes))?'"'.concat(e.replace(/"/g,'\\"').replace(/\n/g,"\\n"),'"'):e}},31(e){e.exports=function(e){return e[1]}},24(e){var o=[];function r(e){for(var r=-1,t=0;t<o.length;t++)if(o[t].identifier===e){r=t;break}return r}function t(e,t){for(var a={},f=[],n=0;n<e.length;n++){var i=e[n],d=t.base?i[0]+t.base:i[0],p=a[d]||0,l="".concat(d," ").concat(p);a[d]=p+1;var s=r(l),k={css:i[1],media:i[2],sourceMap:i[3],supports:i[4],layer:i[5]};if(-1!==s)o[s].references++,o[s].updater(k);else{var c=function(e,o){var r=o.domAPI(o);return r.update(e),function(o){o?(o.css!==e.css||o.media!==e.media||o.sourceMap!==e.sourceMap||o.supports!==e.supports||o.layer!==e.layer)&&r.update(e=o):r.remove()}}(k,t);t.byIndex=n,o.splice(n,0,{identifier:l,updater:c,references:1})}f.push(l)}return f}e.exports=function(e,a){var f=t(e=e||[],a=a||{});return function(e){e=e||[];for(var n=0;n<f.length;n++){var i=r(f[n]);o[i].references--}for(var d=t(e,a),p=0;p<f.length;p++){var l=r(f[p]);0===o[l].references&&(o[l].updater(),o.splice(l,1))}f=d}}},26(e){var o={};e.exports=function(e,r){var t=function(e){if(void 0===o[e]){var r=document.querySelector(e);if(window.HTMLIFrameElement&&r instanceof window.HTMLIFrameElement)try{r=r.contentDocument.head}catch(e){r=null}o[e]=r}return o[e]}(e);if(!t)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");t.appendChild(r)}},28(e){e.exports=function(e){var o=document.createElement("style");return e.setAttributes(o,e.attributes),e.insert(o,e.options),o}},27(e,o,r){e.exports=function(e){var o=r.nc;o&&e.setAttribute("nonce",o)}},25(e){e.exports=function(e){if("u"<typeof document)return{update:function(){},remove:function(){}};var o=e.insertStyleElement(e);return{update:function(r){var t,a,f;t="",r.supports&&(t+="@supports (".concat(r.supports,") {")),r.media&&(t+="@media ".concat(r.media," {")),(a=void 0!==r.layer)&&(t+="@layer".concat(r.layer.length>0?" ".concat(r.layer):""," {")),t+=r.css,a&&(t+="}"),r.media&&(t+="}"),r.supports&&(t+="}"),(f=r.sourceMap)&&"u">typeof btoa&&(t+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(f))))," */")),e.styleTagTransform(t,o,e.options)},remove:function(){var e;null===(e=o).parentNode||e.parentNode.removeChild(e)}}}},29(e){e.exports=function(e,o){if(o.styleSheet)o.styleSheet.cssText=e;else{for(;o.firstChild;)o.removeChild(o.firstChild);o.appendChild(document.createTextNode(e))}}},35(e){e.exports="data:image/svg+xml,%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 16 16%27%3E%3Cpath d=%27M8 1 5 5.2h6zM3.4 7l-3 4.2h6zm9.2 0-3 4.2h6zM8 9l-2.6 6h5.2z%27/%3E%3C/svg%3E"}}]);