// What is read of repositories without the editor: numbers, and lists of changes.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { State } from '../src/git/api';
import { entriesOf, numbersOf } from '../src/git/entries';

test('numbers are read, also of renamed and of binary files', () => {
  const said = '2\t1\ta.txt\0-\t-\tpicture.png\0' + '3\t0\t\0old name\0new\tname\0';
  assert.deepEqual(
    numbersOf(said, (path) => `/r/${path}`),
    [
      { path: '/r/a.txt', added: 2, removed: 1 },
      { path: '/r/picture.png', added: null, removed: null },
      { path: '/r/new\tname', added: 3, removed: 0, renamed_from: '/r/old name' },
    ],
  );
  assert.deepEqual(
    numbersOf('', (path) => path),
    [],
  );
});

test('a file that is changed in the index and in the work tree is one entry', () => {
  const change = (path: string, status: number, from = path) => ({
    uri: { fsPath: path },
    originalUri: { fsPath: from },
    status,
  });
  const state = {
    mergeChanges: [change('/r/both', 18)],
    indexChanges: [change('/r/a', 0), change('/r/new', 3, '/r/old')],
    workingTreeChanges: [change('/r/a', 6), change('/r/u', 7)],
  };
  assert.deepEqual(
    entriesOf(state as unknown as State, (path) => path),
    [
      { path: '/r/both', index: 'unmerged', worktree: 'unmerged' },
      { path: '/r/a', index: 'modified', worktree: 'deleted' },
      { path: '/r/new', index: 'renamed', worktree: null, renamed_from: '/r/old' },
      { path: '/r/u', index: null, worktree: 'untracked' },
    ],
  );
});
