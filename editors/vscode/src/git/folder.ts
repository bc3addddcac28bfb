// Where git keeps what it knows of a work tree.

import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** What `.git` of a work tree is, or points to. */
export function gitFolderOf(worktree: string): string {
  const dot = join(worktree, '.git');
  const isFile = statSync(dot, { throwIfNoEntry: false })?.isFile();
  const target = isFile ? firstLine(dot)?.replace(/^gitdir: /, '') : undefined;
  return target === undefined ? dot : resolve(worktree, target);
}

/** The first line of a small file; `undefined` if there is none. */
export function firstLine(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').split('\n')[0];
  } catch {
    return undefined;
  }
}
