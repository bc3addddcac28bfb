import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { checkText, onDisk } from '../src/disk';
import { isBeneath, realNameOf, realOf } from '../src/paths';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'prism-paths-')));
after(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, 'inside'));
mkdirSync(join(root, 'outside'));
writeFileSync(join(root, 'outside/secret'), 'x');
symlinkSync(join(root, 'outside'), join(root, 'inside/way-out'));
symlinkSync(join(root, 'nowhere'), join(root, 'inside/dangling'));
symlinkSync('loop', join(root, 'inside/loop'));

//
test('links are resolved before it is asked whether a path lies in a folder', () => {
  const inside = join(root, 'inside');
  for (const path of [
    'inside/way-out/secret',
    'inside/../outside/secret',
    'inside/way-out/not-there/yet',
    'inside/dangling',
    'inside/dangling/below',
  ]) {
    assert.equal(isBeneath(realOf(join(root, path)), inside), false, path);
  }
  for (const path of ['inside', 'inside/a/b/c.txt', 'inside/./a.txt']) {
    assert.equal(isBeneath(realOf(join(root, path)), inside), true, path);
  }
});

test('a folder with a longer name is another', () => {
  assert.ok(isBeneath('/w/a', '/w/a') && isBeneath('/w/a/b', '/w/a') && isBeneath('/a', '/'));
  assert.ok(!isBeneath('/w/ab', '/w/a') && !isBeneath('/w', '/w/a'));
});

test('a name that is not followed is itself', () => {
  assert.equal(realNameOf(join(root, 'inside/way-out')), join(root, 'inside/way-out'));
  assert.equal(realNameOf(join(root, 'inside/way-out/new')), join(root, 'outside/new'));
  assert.throws(() => realOf(join(root, 'inside/loop/x')), /ELOOP/);
});

test('a file is read whole, or it is said why not', async () => {
  assert.equal(String(await onDisk(join(root, 'outside/secret'))), 'x');
  assert.equal(await onDisk(join(root, 'none')), undefined);
  assert.equal(await onDisk(join(root, 'outside/secret/below')), undefined);
  await assert.rejects(onDisk(root), /it is a folder/);
  writeFileSync(join(root, 'large'), Buffer.alloc((5 << 20) + 1));
  await assert.rejects(onDisk(join(root, 'large')), /more than 5242880 bytes/);
  assert.throws(() => checkText('a\0'), /NUL/);
  assert.throws(() => checkText('x'.repeat((5 << 20) + 1)), /at most 5242880/);
});
