// Git, over the editor's own git extension: it finds and opens repositories, says how they stand and adds to the index, and the
// person sees all of it at once in its view. What it has no way for (`call.ts`) is done with its git program.

import { join } from 'node:path';
import * as vscode from 'vscode';

import type { Args } from '../args';
import { FENCE } from '../command/fence';
import { unsavedBeneath } from '../command/unsaved';
import { folder } from '../command/words';
import { refusal, type Git, type Said } from '../git/call';
import { hasGit } from '../git/api';
import { entriesOf, numbersOf, type Numbers } from '../git/entries';
import { Repository } from '../git/repository';
import { Refusal, wrong } from '../refusal';
import type { Call, Verb } from '../verbs';

/** Entries of a status. Of more the first are told, and that there are more. */
const MAX_ENTRIES = 5_000;

/** Paths of one action. */
const MAX_PATHS = 1_000;

/** Bytes of a message; a person has to read it. */
const MAX_MESSAGE = 64 << 10;

/** Bytes of a diff, and of the list of its files. Beyond it the rest is left out, and the answer says so. */
const MAX_DIFF = 1 << 20;

/** Branches of an answer. Of more, those that were committed to last. */
const MAX_BRANCHES = 1_000;

/** Neither a program of the repository's, nor a form of its own choice. */
const FORM = [
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--ignore-submodules=dirty',
  '--submodule=short',
  '--src-prefix=a/',
  '--dst-prefix=b/',
];

/** None where the editor has no git, as in a folder that is not trusted: the built-in runtime does them then. */
export const git: Record<string, Verb> = hasGit() ? { git_status, git_add, git_commit, git_diff, git_branch } : {};

async function opened(call: Call, cwd: string | undefined): Promise<Repository> {
  return Repository.open(call, await folder(call.desk, cwd));
}

// === git_status ===

async function git_status(call: Call): Promise<object> {
  const cwd = call.args.maybeText('cwd');
  call.args.done();
  return status(await opened(call, cwd));
}

async function status(repository: Repository): Promise<object> {
  await repository.refresh();
  const { state, worktree } = repository;
  const entries = entriesOf(state, (path) => repository.real(path));
  const head = state.HEAD;
  const limit = vscode.workspace.getConfiguration('git').get<number>('statusLimit') ?? Infinity;
  const isCut = entries.length > MAX_ENTRIES || (limit > 0 && entries.length >= limit);
  return {
    path: worktree,
    branch: head?.name ?? null,
    commit: head?.commit ?? null,
    upstream: head?.upstream === undefined ? null : `${head.upstream.remote}/${head.upstream.name}`,
    ahead: head?.ahead ?? null,
    behind: head?.behind ?? null,
    is_complete: !isCut && !repository.hidesUntracked,
    entries: entries.slice(0, MAX_ENTRIES),
    is_clean: entries.every((entry) => entry.worktree === 'ignored'),
    unsaved: unsavedBeneath(worktree),
    fence: FENCE,
  };
}

// === git_add ===

async function git_add(call: Call): Promise<object> {
  const { args, desk } = call;
  const cwd = args.maybeText('cwd');
  const wanted = pathsOf(args);
  args.done();
  const repository = await opened(call, cwd);
  // A link is a thing of its own to git.
  const real = await Promise.all(wanted.map((path) => desk.roots.realName(path)));
  const paths = real.map((path) => repository.check(path));
  try {
    // The work tree itself is all of it.
    await repository.add(paths.includes(repository.worktree) ? [] : paths);
  } catch (error) {
    throw addRefusal(error);
  }
  return status(repository);
}

/** Takes what is to be added; nothing means all. */
function pathsOf(args: Args): string[] {
  const [path, listed, all] = [args.maybeText('path'), args.list('paths'), args.flag('all')];
  const given = [path !== undefined, listed !== undefined, all].filter(Boolean);
  if (given.length !== 1) throw wrong('give one of `path`, `paths` and `all: true`');
  if (path !== undefined) return [path];
  if (listed === undefined) return [];
  if (listed.length < 1 || listed.length > MAX_PATHS) throw wrong(`\`paths\` must hold 1 to ${MAX_PATHS} paths`);
  return listed.map((one) => {
    if (typeof one !== 'string') throw wrong('`paths` must hold strings');
    return one;
  });
}

function addRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const said = (error as { stderr?: string }).stderr ?? String(error);
  if (said.includes('did not match any files')) {
    return new Refusal('not_found', 'one of the paths is neither there nor known to git');
  }
  if (said.includes('are ignored by one of your .gitignore')) {
    return wrong('one of the paths is ignored (.gitignore), and nothing that is ignored is added');
  }
  return refusal({ code: undefined, stdout: '', stderr: said }, 'git could not add it');
}

// === git_commit ===

async function git_commit(call: Call): Promise<object> {
  const { args } = call;
  const cwd = args.maybeText('cwd');
  const message = args.text('message');
  args.done();
  if (message.trim() === '' || message.includes('\0')) throw wrong('`message` must hold words, and no NUL');
  const bytes = Buffer.byteLength(message);
  if (bytes > MAX_MESSAGE) {
    throw new Refusal('too_large', `a message of ${bytes} bytes; at most ${MAX_MESSAGE} are allowed`);
  }
  const repository = await opened(call, cwd);
  const { git, worktree } = repository;
  const staged = await git.run(['diff', '--cached', '--quiet', '--no-ext-diff', '--ignore-submodules=dirty']);
  const merging = await git.run(['rev-parse', '--verify', '--quiet', 'MERGE_HEAD']);
  if (staged.code === 0 && merging.code !== 0) throw new Refusal('failed', 'nothing is staged; git_add first');
  const words = ['commit', '--quiet', '--no-verify', '--no-gpg-sign', '--no-edit', '--cleanup=whitespace', '--file=-'];
  const said = await git.run(words, { input: message });
  if (said.code !== 0) throw commitRefusal(said);
  const commit = (await git.ask(['rev-parse', '--verify', 'HEAD'])).trim();
  const { files } = await numbers(
    git,
    ['diff-tree', '-r', '-M', '--root', '--no-commit-id', '--diff-merges=first-parent'],
    [commit],
  );
  await repository.refresh();
  return { path: worktree, commit, branch: await current(git), files, fence: FENCE, unsaved: unsavedBeneath(worktree) };
}

/** Says what to do about what often goes wrong. */
function commitRefusal(said: Said): Refusal {
  const words = `${said.stderr}\n${said.stdout}`;
  if (/identity unknown|auto-detection is disabled/.test(words)) {
    const set = '`git config --global user.name NAME` and `git config --global user.email ADDRESS`';
    return new Refusal('failed', `git does not know who the person is; they set it once with ${set}`);
  }
  if (words.includes('unmerged files')) {
    const why = 'some files are in conflict (git_status names them); solve them and git_add them first';
    return new Refusal('failed', why);
  }
  return refusal(said, 'git could not commit it');
}

// === git_diff ===

async function git_diff(call: Call): Promise<object> {
  const { args, desk } = call;
  const cwd = args.maybeText('cwd');
  const path = args.maybeText('path');
  const isStaged = args.flag('staged');
  const commit = nameOf(args, 'commit');
  args.done();
  if (isStaged && commit !== undefined) throw wrong('give `staged` or `commit`, not both');
  const repository = await opened(call, cwd);
  const { git, worktree } = repository;
  const paths = path === undefined ? [] : [repository.check(await desk.roots.realName(path))];
  const { words, commits } = await compared(git, isStaged, commit);
  const diff = await git.run([...words, ...FORM, '--patch', '--end-of-options', ...commits, '--', ...paths], {
    most: MAX_DIFF,
  });
  if (diff.code !== undefined && diff.code !== 0) throw refusal(diff, 'git diff failed');
  const isWhole = diff.code === 0;
  const told = isWhole ? diff.stdout : diff.stdout.slice(0, diff.stdout.lastIndexOf('\n') + 1);
  const { files, areAll } = await numbers(git, words, commits, paths);
  const isComplete = isWhole && areAll;
  return {
    path: worktree,
    diff: told,
    files,
    is_complete: isComplete,
    unsaved: unsavedBeneath(worktree),
    fence: FENCE,
  };
}

/** What is compared: the work tree with the index, the index with the last commit, a commit with the one before it, or two. */
async function compared(
  git: Git,
  isStaged: boolean,
  name: string | undefined,
): Promise<{ words: string[]; commits: string[] }> {
  if (name === undefined) return { words: isStaged ? ['diff', '--cached'] : ['diff'], commits: [] };
  const range = /^(.*?)\.\.(.*)$/.exec(name);
  if (range === null) {
    const words = ['diff-tree', '-r', '-M', '--root', '--no-commit-id', '--diff-merges=first-parent'];
    return { words, commits: [await commitOf(git, name)] };
  }
  const [, old = '', now = ''] = range;
  if (now.startsWith('.')) throw wrong('`commit` is one commit, or two with `..` between them');
  const commits = [await commitOf(git, old || 'HEAD'), await commitOf(git, now || 'HEAD')];
  return { words: ['diff-tree', '-r', '-M'], commits };
}

async function commitOf(git: Git, name: string): Promise<string> {
  const said = await git.run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]);
  if (said.code !== 0) throw wrong(`there is no commit ${JSON.stringify(name)}`);
  return said.stdout.trim();
}

/** What each file has gained and lost, and whether these are all. */
async function numbers(
  git: Git,
  words: readonly string[],
  commits: readonly string[],
  paths: readonly string[] = [],
): Promise<{ files: Numbers[]; areAll: boolean }> {
  const said = await git.run([...words, ...FORM, '--numstat', '-z', '--end-of-options', ...commits, '--', ...paths], {
    most: MAX_DIFF,
  });
  if (said.code !== undefined && said.code !== 0) throw refusal(said, 'git diff failed');
  return { files: numbersOf(said.stdout, (path) => join(git.worktree, path)), areAll: said.code === 0 };
}

// === git_branch ===

async function git_branch(call: Call): Promise<object> {
  const { args } = call;
  const cwd = args.maybeText('cwd');
  const name = nameOf(args, 'name');
  const [isCreate, isSwitch] = [args.flag('create'), args.flag('switch')];
  const from = nameOf(args, 'from');
  args.done();
  if (from !== undefined && !isCreate) throw wrong('`from` is where a branch that is created begins');
  if (name === undefined && (isCreate || isSwitch)) throw wrong('`name` is missing: a string');
  if (name !== undefined && !isCreate && !isSwitch) throw wrong('say what to do with it: `create`, `switch` or both');
  const repository = await opened(call, cwd);
  const { git, worktree } = repository;
  if (name !== undefined) {
    const start = from === undefined ? [] : [await commitOf(git, from)];
    await changed(git, name, isCreate, isSwitch, start);
    await repository.refresh();
  }
  return { ...(await branches(git)), unsaved: unsavedBeneath(worktree) };
}

async function changed(git: Git, name: string, isCreate: boolean, isSwitch: boolean, start: string[]): Promise<void> {
  const shown = JSON.stringify(name);
  const full = `refs/heads/${name}`;
  if ((await git.run(['check-ref-format', full])).code !== 0) throw wrong(`${shown} cannot be a branch's name`);
  const isThere = (await git.run(['show-ref', '--verify', '--quiet', full])).code === 0;
  if (!isCreate && !isThere) throw new Refusal('not_found', `there is no branch ${shown}; \`create\` makes it`);
  if (isCreate && isThere) throw wrong(`there is a branch ${shown} already`);
  const making = isCreate ? ['--create'] : [];
  const words = isSwitch
    ? ['switch', '--quiet', '--no-guess', '--no-progress', '--no-recurse-submodules', ...making, name, ...start]
    : ['branch', '--end-of-options', name, ...start];
  const said = await git.run(words);
  // Its own words say which files are in the way.
  if (said.code !== 0) throw refusal(said, 'git could not do it');
}

async function branches(git: Git): Promise<object> {
  const form = '--format=%(HEAD)%00%(refname:lstrip=2)%00%(objectname)%00%(upstream:lstrip=2)';
  const count = `--count=${MAX_BRANCHES + 1}`;
  const lines = (await git.ask(['for-each-ref', '--sort=-committerdate', count, form, 'refs/heads'])).split('\n');
  const all = lines.filter(Boolean).map((line) => {
    const [mark, name, commit, upstream] = line.split('\0');
    return { name, commit, is_current: mark === '*', upstream: upstream || null };
  });
  return {
    path: git.worktree,
    branches: all.slice(0, MAX_BRANCHES),
    branch: await current(git),
    is_complete: all.length <= MAX_BRANCHES,
    fence: FENCE,
  };
}

/** The branch that is checked out; one without a commit is in no list. */
async function current(git: Git): Promise<string | null> {
  const said = await git.run(['symbolic-ref', '--quiet', '--short', 'HEAD']);
  return said.code === 0 ? said.stdout.trim() : null;
}

/** Takes a word that git reads as a name: of a branch, of a commit. */
function nameOf(args: Args, argument: string): string | undefined {
  const most = 250;
  const name = args.maybeText(argument);
  if (name === undefined) return undefined;
  if (name === '' || Buffer.byteLength(name) > most || name.startsWith('-') || /[\0-\x1f\x7f]/.test(name)) {
    throw wrong(`\`${argument}\` must be 1 to ${most} bytes, not begin with \`-\`, and hold no line breaks`);
  }
  return name;
}
