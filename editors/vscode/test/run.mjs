// Runs the tests of what needs no editor: each is bundled with a stand-in for the editor's API and run by Node's own runner.
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { build } from 'esbuild';

const names = readdirSync('test').filter((name) => name.endsWith('.test.ts'));
rmSync('test/out', { recursive: true, force: true });
await build({
  entryPoints: names.map((name) => `test/${name}`),
  outdir: 'test/out',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  alias: { vscode: './test/vscode.ts' },
  sourcemap: 'inline',
  logLevel: 'warning',
});
const files = names.map((name) => `test/out/${name.replace(/\.ts$/, '.cjs')}`);
const options = ['--enable-source-maps', '--test', '--test-timeout=20000'];
process.exit(spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' }).status ?? 1);
