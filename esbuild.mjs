// Bundles the widget (ESM for anywidget) and the report viewer (one inlined script) into the package.
import * as esbuild from 'esbuild';

const out = 'kernelforge_lab/static';
const common = { bundle: true, minify: true, target: 'es2022', legalComments: 'none', logLevel: 'info' };
const builds = [
  { ...common, entryPoints: ['js/widget/index.ts'], format: 'esm', outfile: `${out}/widget.js` },
  { ...common, entryPoints: ['js/report/index.ts'], format: 'iife', outfile: `${out}/report.js` },
  { ...common, entryPoints: ['js/style/base.css'], outfile: `${out}/widget.css` }
];

if (process.argv.includes('--watch')) {
  for (const build of builds) {
    await (await esbuild.context(build)).watch();
  }
} else {
  await Promise.all(builds.map(build => esbuild.build(build)));
}
