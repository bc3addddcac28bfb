// ripgrep as an editor has it: in the folder where its packages are. Without one on this machine there is nothing to
// try.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { CancellationToken } from 'vscode';
import { type Pattern, Ripgrep } from '../src/search/ripgrep';

const never = {
  isCancellationRequested: false,
  onCancellationRequested: () => ({ dispose: () => undefined }),
} as unknown as CancellationToken;
const expression = (text: string): Pattern => ({
  text,
  isFixed: false,
  ignoresCase: false,
  isWord: false,
  isMultiline: false,
});

const folder = mkdtempSync(join(tmpdir(), 'ripgrep-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const where = spawnSync('which', ['rg'], { encoding: 'utf8' }).stdout.trim();
const skip = where === '' ? 'there is no rg on PATH' : false;
const bin = join(folder, 'app', 'node_modules', '@vscode', 'ripgrep', 'bin');
mkdirSync(bin, { recursive: true });
if (where) symlinkSync(where, join(bin, 'rg'));
const ripgrep = Ripgrep.in(join(folder, 'app')) as Ripgrep;

test('without one nothing is searched', () => {
  assert.equal(Ripgrep.in(join(folder, 'nowhere')), undefined);
});

test('places in a text are by UTF-16 units, and groups are put into the new text', { skip }, async () => {
  const text = 'ä𝔄 key=value\nk=v\n';
  const pattern = expression('(\\w+)=(?P<second>\\w+)');
  const places = await ripgrep.text(pattern, text, 10, never);
  assert.deepEqual(
    places.map(([start, end]) => text.slice(start, end)),
    ['key=value', 'k=v'],
  );
  assert.deepEqual(await ripgrep.replaced(pattern, text, '${second}=$1\n$$', never), ['value=key\n$', 'v=k\n$']);
});

test('no more is looked for than is wanted', { skip }, async () => {
  assert.equal((await ripgrep.text(expression('x'), 'x\n'.repeat(50_000), 3, never)).length, 4);
});

test('an expression that is none is refused in words', { skip }, async () => {
  await assert.rejects(ripgrep.text(expression('('), 'x', 10, never), {
    code: 'bad_arguments',
    message: /unclosed group/,
  });
  await assert.rejects(ripgrep.text(expression('a\\nb'), 'x', 10, never), {
    code: 'bad_arguments',
    message: /`multiline`/,
  });
});

// An expression that would hold JavaScript's own engine up for hours.
test('no expression takes long', { skip, timeout: 10_000 }, async () => {
  assert.deepEqual(await ripgrep.text(expression('(a+)+$'), `${'a'.repeat(5_000)}b`, 10, never), []);
});

test('what ignore files leave out is left out, from the folder down', { skip }, async () => {
  const tree = join(folder, 'tree');
  const files = {
    '.gitignore': 'target\n*.log\n',
    'a.txt': 'needle\n',
    'b.log': 'needle\n',
    'target/c.txt': 'needle\n',
    '.secret': 'needle\n',
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(tree, path, '..'), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
  const found = async (hidden: boolean, ignored: boolean): Promise<string[]> => {
    const paths: string[] = [];
    const { isComplete } = await ripgrep.folder(
      expression('needle'),
      tree,
      { also: { hidden, ignored }, isRoot: true },
      never,
      (one) => {
        paths.push(one.path);
        return true;
      },
    );
    assert.equal(isComplete, true);
    return paths.sort();
  };
  assert.deepEqual(await found(false, false), ['a.txt']);
  assert.deepEqual(await found(true, false), ['.secret', 'a.txt']);
  assert.deepEqual(await found(false, true), ['a.txt', 'b.log', 'target/c.txt']);
  const listed: string[] = [];
  await ripgrep.files(
    tree,
    { also: { hidden: false, ignored: false }, isRoot: true },
    never,
    (path) => listed.push(path) > 0,
  );
  assert.deepEqual(listed, ['a.txt']);
});
