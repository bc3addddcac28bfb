// One run of git, for what the extension's API has no way: diffs with numbers, and all that would run the repository's hooks.
// Settings that outrank every file's keep hooks, pagers, editors, signatures and transports from running. Filters do run, as they
// do whenever the editor itself looks at the folder.

import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as vscode from 'vscode';

import { environment } from '../command/child';
import { Refusal } from '../refusal';

export interface Said {
  /** `undefined` if it was ended because it said more than was wanted. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** How long one run may take. */
const PATIENCE = 25_000;

/** How often, and after how long, it is tried again while somebody else is at the index: the editor, the person. */
const MAX_TRIES = 20;
const PAUSE = 100;

/** What is read of what it says, if nothing else is said. */
export const MAX_STDOUT = 4 << 20;

/** Settings that hold whatever a file says. */
const SETTINGS: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.pager': 'cat',
  'core.editor': ':',
  'core.askPass': '',
  'core.sshCommand': 'false',
  'credential.helper': '',
  'commit.gpgSign': 'false',
  'log.showSignature': 'false',
  'diff.external': '',
  'protocol.allow': 'never',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'submodule.recurse': 'false',
  'diff.submodule': 'short',
  'diff.ignoreSubmodules': 'dirty',
  'color.ui': 'false',
  'core.quotePath': 'false',
  // Nobody is made up where the person has not said who they are.
  'user.useConfigOnly': 'true',
};

/** What steers git is not taken over from whoever started the editor, but who the person is and where their config is. */
const KEPT = /^GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL)$|^GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$|^GIT_ATTR_NOSYSTEM$/;

const FIXED = {
  GIT_TERMINAL_PROMPT: '0',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_ALLOW_PROTOCOL: '',
  GIT_EDITOR: ':',
  GIT_PAGER: 'cat',
  GIT_ASKPASS: '',
  SSH_ASKPASS: '',
  GIT_SSH_COMMAND: 'false',
  // Its words are passed on to agents, and some are looked for.
  LC_ALL: 'C',
};

export class Git {
  constructor(
    private readonly program: string,
    readonly worktree: string,
    private readonly stop: vscode.CancellationToken,
  ) {}

  /** Runs it, and fails if it does. */
  async ask(words: readonly string[]): Promise<string> {
    const said = await this.run(words);
    if (said.code === 0) return said.stdout;
    throw refusal(said, `git ${words[0] ?? ''} failed`);
  }

  async run(words: readonly string[], { input = '', most = MAX_STDOUT } = {}): Promise<Said> {
    for (let tries = 1; ; tries += 1) {
      const said = await this.once(words, input, most);
      const isLocked = said.code !== 0 && /index\.lock': File exists/.test(said.stderr);
      if (!isLocked || tries === MAX_TRIES || this.stop.isCancellationRequested) return said;
      await sleep(PAUSE);
    }
  }

  private once(words: readonly string[], input: string, most: number): Promise<Said> {
    const end = new AbortController();
    const stopped = this.stop.onCancellationRequested(() => end.abort());
    return new Promise<Said>((resolve, reject) => {
      const options = {
        cwd: this.worktree,
        env: guarded(this.worktree),
        timeout: PATIENCE,
        maxBuffer: most,
        signal: end.signal,
      };
      const child = execFile(this.program, ['--no-pager', ...words], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === 'number') resolve({ code, stdout, stderr });
        else if (error?.code === ('ERR_CHILD_PROCESS_STDIO_MAXBUFFER' as unknown)) {
          resolve({ code: undefined, stdout, stderr });
        } else if (error?.killed || end.signal.aborted) {
          reject(new Refusal('timed_out', 'git was not done in time; try a smaller part'));
        } else reject(new Refusal('failed', `git cannot be run: ${error?.message ?? ''}`));
      });
      // It may end before it has read everything; then its complaint says more than a broken pipe.
      child.stdin?.on('error', () => {});
      child.stdin?.end(input);
    }).finally(() => stopped.dispose());
  }
}

/** Tells what went wrong in git's own words: the last complaint, and what it is about. */
export function refusal(said: Said, what: string): Refusal {
  const lines = said.stderr.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('hint:'));
  const first = lines.map((line) => /^(fatal|error):/.test(line)).lastIndexOf(true);
  const complaint = lines.slice(first).join('\n').slice(0, 2_000);
  return new Refusal(
    'failed',
    complaint === '' ? `${what} (exit code ${said.code ?? 'none'})` : `${what}: ${complaint}`,
  );
}

function guarded(worktree: string): NodeJS.ProcessEnv {
  const given = Object.entries(environment(worktree, {}));
  const env: NodeJS.ProcessEnv = Object.fromEntries(
    given.filter(([name]) => !name.startsWith('GIT_') || KEPT.test(name)),
  );
  Object.assign(env, FIXED, { GIT_CONFIG_COUNT: `${Object.keys(SETTINGS).length}` });
  // Not as `-c`, which ends a name at its first `=`.
  Object.entries(SETTINGS).forEach(([name, value], i) => {
    env[`GIT_CONFIG_KEY_${i}`] = name;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  });
  return env;
}
