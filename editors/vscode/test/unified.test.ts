import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { applied } from '../src/edits';
import { overlap, unified } from '../src/unified';

test('a difference has the lines that change, and three around them', () => {
  const text = 'a\nb\nc\nd\ncat cat\nf\ng\nh\ni\n';
  const start = text.indexOf('cat');
  const shown = unified('/w/a.txt', text, [
    { start, end: start + 3, newText: 'dog' },
    { start: start + 4, end: start + 7, newText: 'dog' },
  ]);
  assert.equal(shown, '--- /w/a.txt\n+++ /w/a.txt\n@@ -2,7 +2,7 @@\n b\n c\n d\n-cat cat\n+dog dog\n f\n g\n h\n');
});

test('a part says where it is, before and after the parts above it', () => {
  const text = Array.from({ length: 30 }, (_, i) => `${i}\n`).join('');
  const at = text.indexOf('20');
  const shown = unified('a', text, [
    { start: 2, end: 2, newText: 'new\n' },
    { start: at, end: at + 2, newText: 'twenty' },
  ]);
  assert.deepEqual(shown.match(/^@@.*$/gm), ['@@ -1,4 +1,5 @@', '@@ -18,7 +19,7 @@']);
});

test('a name with a line break in it looks like no part of a difference', () => {
  assert.equal(unified('/w/a\n+b', 'x\n', []), '--- /w/a\uFFFD+b\n+++ /w/a\uFFFD+b\n');
});

test('edits that are about the same letters are told apart from those that only touch', () => {
  assert.equal(
    overlap([
      { start: 0, end: 3, newText: '' },
      { start: 2, end: 4, newText: '' },
    ]),
    true,
  );
  assert.equal(
    overlap([
      { start: 2, end: 4, newText: '' },
      { start: 0, end: 2, newText: 'x' },
      { start: 2, end: 2, newText: 'y' },
    ]),
    false,
  );
});

test('patch makes of a difference what the edits make of the text', () => {
  const folder = mkdtempSync(join(tmpdir(), 'unified-'));
  try {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 0x8000_0000;
      return seed % below;
    };
    const pieces = ['', 'x', '\n', 'new line\n', '\n\n', 'end'];
    for (let round = 0; round < 150; round += 1) {
      const lines = Array.from({ length: random(30) }, (_, i) => `line ${i % 5}`);
      const text = lines.join('\n') + (random(2) === 0 && lines.length > 0 ? '\n' : '');
      const edits = [];
      for (let at = random(20); at <= text.length; at += 1 + random(40)) {
        const end = Math.min(text.length, at + random(15));
        edits.push({ start: at, end, newText: pieces[random(pieces.length)] ?? '' });
        at = end;
      }
      const path = join(folder, 'a.txt');
      writeFileSync(path, text);
      const goal = applied(text, edits).text;
      const difference = unified('a.txt', text, edits);
      if (!difference.includes('@@')) {
        assert.equal(goal, text);
        continue;
      }
      const patch = spawnSync('git', ['apply', '--unidiff-zero', '-p0', '-'], {
        cwd: folder,
        input: difference,
        encoding: 'utf8',
      });
      assert.equal(patch.status, 0, `${patch.stderr}\n${JSON.stringify(text)}\n${difference}`);
      assert.equal(readable(path), goal, difference);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A file that holds nothing any more may be gone. */
function readable(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
