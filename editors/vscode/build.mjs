// Makes dist/extension.js: one file with all that runs. The same sources give the same bytes.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  // The editor has the first; the others are ws's native helpers, which it does without.
  external: ['vscode', 'bufferutil', 'utf-8-validate'],
  legalComments: 'inline',
  logLevel: 'warning',
});
