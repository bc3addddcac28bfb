// Where is searched, and what of it: the arguments that all searches share, and the texts that count as they are in the
// editor.

import { stat } from 'node:fs/promises';
import * as nodePath from 'node:path';
import * as vscode from 'vscode';
import { isBeneath } from '../../paths';
import { Refusal, wrong } from '../../refusal';
import { Glob } from '../../search/glob';
import { type Also, Ripgrep } from '../../search/ripgrep';
import type { Text } from '../../texts';
import type { Call } from '../../verbs';

/** Places that an answer holds at most, and if nothing else is said; it says if there are more. */
export const MOST_MATCHES = 10_000;
export const USUAL_MATCHES = 1_000;

/** The editor's own ripgrep; without it, searches through files are left to the built-in editor. */
export const ripgrep = Ripgrep.in(vscode.env.appRoot);

/** Where is searched. */
export interface Ground {
  /** Where it really is. */
  readonly path: string;
  readonly isFolder: boolean;
  readonly also: Also;
  /** Whether it is one of the window's folders: no ignore file above it counts. */
  readonly isRoot: boolean;
  /** Whether a file counts, by its path beneath the folder. */
  wants(relative: string): boolean;
}

export function takeGlob(call: Call): Glob | undefined {
  const written = call.args.maybeText('glob');
  if (written === undefined) return undefined;
  const glob = Glob.of(written);
  if (typeof glob === 'string') throw wrong(`\`glob\` ${glob}`);
  return glob;
}

/** Finds what a path leads to; without one the first folder. */
export async function groundAt(
  call: Call,
  path: string | undefined,
  glob: Glob | undefined,
  also: Also,
): Promise<Ground> {
  const { roots } = call.desk;
  const real = path === undefined ? roots.first : await roots.real(path);
  const wants = (relative: string): boolean => glob?.matches(relative) ?? true;
  try {
    const isFolder = (await stat(real)).isDirectory();
    return { path: real, isFolder, also, isRoot: roots.all.includes(real), wants };
  } catch {
    // The unsaved text of a file that somebody has removed is still there to be searched.
    if (call.desk.texts.at(real)) return { path: real, isFolder: false, also, isRoot: false, wants };
    throw new Refusal('not_found', `there is no ${JSON.stringify(path ?? real)}`);
  }
}

/** Unsaved texts beneath a folder that a search looks at: not those that ignore files leave out. */
export async function unsavedIn(call: Call, ground: Ground): Promise<Map<string, Text>> {
  const unsaved = new Map<string, Text>();
  for (const text of call.desk.texts.all()) {
    const relative = nodePath.relative(ground.path, text.path);
    if (text.isDirty && isBeneath(text.path, ground.path) && ground.wants(relative)) unsaved.set(relative, text);
  }
  if (unsaved.size === 0 || !ripgrep) return unsaved;
  const left = new Set(unsaved.keys());
  await ripgrep.files(ground.path, ground, call.stop, (path) => {
    left.delete(path);
    return left.size > 0;
  });
  // What no walk meets is left out by a rule, or its file is gone.
  for (const path of left) {
    const isThere = await stat(nodePath.join(ground.path, path)).then(
      () => true,
      () => false,
    );
    if (isThere) unsaved.delete(path);
  }
  return unsaved;
}
