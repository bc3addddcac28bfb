// What has changed, as the editor's git has it in three lists, as one list of paths; and what `git diff --numstat -z` says.

import type { Change, State } from './api';

export interface Entry {
  readonly path: string;
  index: string | null;
  worktree: string | null;
  renamed_from?: string;
}

/** The extension's numbers for what has become of a file, in their order. */
const INDEX = ['modified', 'added', 'deleted', 'renamed', 'copied'];
const WORKTREE: Readonly<Record<number, string>> = {
  5: 'modified',
  6: 'deleted',
  7: 'untracked',
  8: 'ignored',
  9: 'added',
  10: 'renamed',
  11: 'type_changed',
};

/** `real` says where a path of the editor's really is. */
export function entriesOf(state: State, real: (path: string) => string): Entry[] {
  const entries = new Map<string, Entry>();
  const entry = (change: Change): Entry => {
    const path = real(change.uri.fsPath);
    const found = entries.get(path) ?? { path, index: null, worktree: null };
    entries.set(path, found);
    const from = real(change.originalUri.fsPath);
    if (from !== path) found.renamed_from = from;
    return found;
  };
  state.mergeChanges.forEach((change) => Object.assign(entry(change), { index: 'unmerged', worktree: 'unmerged' }));
  state.indexChanges.forEach((change) => {
    entry(change).index = INDEX[change.status] ?? 'modified';
  });
  [...state.workingTreeChanges, ...(state.untrackedChanges ?? [])].forEach((change) => {
    entry(change).worktree = WORKTREE[change.status] ?? 'modified';
  });
  return [...entries.values()];
}

export interface Numbers {
  readonly path: string;
  readonly added: number | null;
  readonly removed: number | null;
  readonly renamed_from?: string;
}

/** Reads `--numstat -z`; `real` puts a path beneath the work tree. */
export function numbersOf(output: string, real: (path: string) => string): Numbers[] {
  const records = output.split('\0');
  const files: Numbers[] = [];
  for (let i = 0; i < records.length; i += 1) {
    const [, added = '', removed = '', path = ''] = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(records[i] ?? '') ?? [];
    if (added === '') continue;
    const lines = { added: added === '-' ? null : Number(added), removed: removed === '-' ? null : Number(removed) };
    if (path !== '') {
      files.push({ path: real(path), ...lines });
      continue;
    }
    // A renamed file has its two names in records of their own.
    const [from, to] = [records[i + 1], records[i + 2]];
    i += 2;
    if (from !== undefined && to !== undefined) files.push({ path: real(to), ...lines, renamed_from: real(from) });
  }
  return files;
}
