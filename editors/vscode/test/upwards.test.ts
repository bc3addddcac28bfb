// How far up a project or a repository is looked for.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { upwards } from '../src/command/upwards';
import { isBeneath } from '../src/paths';

type Asked = Parameters<typeof upwards>[0];

/** A call of a window with one folder; `granted` is what the daemon says was. */
function call(open: string, granted?: string): Asked {
  const desk = { roots: { holds: (path: string) => isBeneath(path, open) } };
  const mayChange = (path: string) => granted === undefined || isBeneath(path, granted);
  return { desk, mayChange } as unknown as Asked;
}

//
test('nothing above the granted folder is looked at, even if the window has it open', () => {
  assert.deepEqual(upwards(call('/p', '/p/a'), '/p/a/b/c'), ['/p/a/b/c', '/p/a/b', '/p/a']);
  assert.deepEqual(upwards(call('/p/a', '/p'), '/p/a/b'), ['/p/a/b', '/p/a'], 'nor above the open one');
});

test('where it is not said what was granted, only the folder itself is looked at', () => {
  assert.deepEqual(upwards(call('/p'), '/p/a/b'), ['/p/a/b']);
});
