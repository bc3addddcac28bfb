// The repository that a folder belongs to, looked for up to the granted one and never above it, and the editor's own view of it.

import { statSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import * as vscode from 'vscode';

import { isGranted, upwards } from '../command/upwards';
import { isBeneath } from '../paths';
import { Refusal, wrong } from '../refusal';
import type { Call } from '../verbs';
import { gitApi, type Repository as Editors } from './api';
import { Git } from './call';
import { firstLine, gitFolderOf } from './folder';

/** How long the editor may take to open a repository, and to look how it stands. */
const OPENING = 15_000;

export class Repository {
  private constructor(
    /** Where the work tree really is. */
    readonly worktree: string,
    readonly git: Git,
    private readonly editors: Editors,
  ) {}

  static async open(call: Call, folder: string): Promise<Repository> {
    const { desk, stop } = call;
    const looked = upwards(call, folder);
    const worktree = looked.find(isWorktree);
    if (worktree === undefined) {
      const where = looked.length > 1 ? `${folder}, nor above it up to the granted folder ${looked.at(-1)}` : folder;
      const next = 'further up is not looked; name its folder as `cwd`';
      throw new Refusal('not_found', `there is no git repository at ${where}; ${next}`);
    }
    // What git works with must be granted, too: a linked work tree or a submodule has it elsewhere.
    const own = await desk.roots.real(gitFolderOf(worktree));
    const common = firstLine(join(own, 'commondir'));
    for (const place of [own, common === undefined ? own : await desk.roots.real(resolve(own, common))]) {
      if (isBeneath(place, worktree) || isGranted(call, place)) continue;
      throw new Refusal('outside_root', `its repository lies at ${place}, outside of the granted folders`);
    }
    const api = await gitApi();
    const uri = desk.roots.uri(worktree);
    const known = api.getRepository(uri);
    const isIt = (one: Editors | null): one is Editors => one !== null && desk.roots.path(one.rootUri) === worktree;
    const editors = isIt(known) ? known : await within(api.openRepository(uri), 'the editor did not open it in time');
    if (!isIt(editors)) {
      const why =
        "the editor's git extension does not open this repository; the person may have closed or hidden it there";
      throw new Refusal('unsupported', why);
    }
    return new Repository(worktree, new Git(api.git.path, worktree, stop), editors);
  }

  /** Has the editor look how it stands now: the person sees what was done. */
  async refresh(): Promise<void> {
    await within(this.editors.status(), 'the editor did not say in time how the repository stands');
  }

  async add(paths: string[]): Promise<void> {
    await within(this.editors.add(paths), 'git did not add it in time');
  }

  get state(): Editors['state'] {
    return this.editors.state;
  }

  /** A path of the editor's, as it really is. */
  real(path: string): string {
    return join(this.worktree, relative(this.editors.rootUri.fsPath, path));
  }

  /** Refuses a path that is not in the work tree. */
  check(path: string): string {
    if (path !== this.worktree && !path.startsWith(this.worktree + sep)) {
      throw wrong(`${path} is not in the work tree ${this.worktree}`);
    }
    if (relative(this.worktree, path).split(sep)[0] === '.git') throw wrong(`${path} is git's own`);
    return path;
  }

  /** Whether a setting of the editor's git keeps something from being listed. */
  get hidesUntracked(): boolean {
    return vscode.workspace.getConfiguration('git').get('untrackedChanges') === 'hidden';
  }
}

/** What git goes by, too. */
function isWorktree(folder: string): boolean {
  return statSync(join(gitFolderOf(folder), 'HEAD'), { throwIfNoEntry: false }) !== undefined;
}

async function within<T>(work: Promise<T>, late: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const up = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Refusal('timed_out', late)), OPENING);
  });
  try {
    return await Promise.race([work, up]);
  } finally {
    clearTimeout(timer);
  }
}
