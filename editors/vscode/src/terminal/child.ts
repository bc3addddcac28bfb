// A program as a child of ours, at a terminal that `script` of util-linux makes: an extension cannot make one itself, and what
// the editor's own terminals print it is not told. Where there is no such `script` the program has pipes, and the answer says so.
// The person sees it on a screen, and can type into it and close it.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants as modes } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { environment, killGroup } from '../command/child';
import { lookAfter, lookAway } from '../command/lookout';
import { beginRun, type Run } from '../command/strays';
import { Refusal } from '../refusal';
import { killSession, setSize, type Ears, type Program, type Size } from './program';

export interface Wanted {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly size: Size;
}

/** How long a terminal may take to be there. */
const STARTING = 5_000;

/** Bytes that a program has not read yet. Beyond it more is refused: the program does not read. */
const MAX_TYPED = 256 << 10;

/** How long is read on after the end. */
const LAST_WORDS = 200;

export async function startChild(wanted: Wanted, ears: Ears): Promise<Program> {
  const run = beginRun();
  const env = environment(wanted.cwd, { TERM: 'xterm-256color', ...wanted.env, ...run.env });
  refuseMissing(wanted.words[0] ?? '', wanted.cwd, env);
  return isScriptThere() ? atTerminal(wanted, env, run, ears) : atPipes(wanted, env, run, ears);
}

async function atTerminal(wanted: Wanted, env: NodeJS.ProcessEnv, run: Run, ears: Ears): Promise<Program> {
  const { rows, cols } = wanted.size;
  // `script` runs a line in $SHELL: that is sh here, and the program gets the person's back.
  const shell = env['SHELL'] === undefined ? 'unset SHELL' : `export SHELL=${quoted(env['SHELL'])}`;
  const said = `printf '%s %s\\n' "$$" "$(tty)" >&3; exec 3>&-`;
  const line = `${shell}; stty rows ${rows} cols ${cols}; ${said}; exec ${wanted.words.map(quoted).join(' ')}`;
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    cwd: wanted.cwd,
    env: { ...env, SHELL: '/bin/sh' },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  let isEnding = false;
  attach(child, run, ears, () => isEnding);
  const [pid, device] = await leader(child);
  lookAfter(pid);
  child.on('exit', () => lookAway(pid));
  const program = {
    pid,
    isTty: true,
    size: wanted.size,
    type: (input: string) => type(child, input),
    async resize(size: Size) {
      await setSize(device, size);
      program.size = size;
    },
    end() {
      isEnding = true;
      killSession(pid);
      // It ends by itself when the session has; this is for one that does not.
      setTimeout(() => killGroup(child.pid, 'SIGKILL'), LAST_WORDS).unref();
    },
  };
  return program;
}

function atPipes(wanted: Wanted, env: NodeJS.ProcessEnv, run: Run, ears: Ears): Program {
  const [program = '', ...rest] = wanted.words;
  const child = spawn(program, rest, { cwd: wanted.cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  let isEnding = false;
  attach(child, run, ears, () => isEnding);
  return {
    pid: child.pid ?? 0,
    isTty: false,
    size: wanted.size,
    type: (input: string) => type(child, input),
    resize: () => Promise.reject(new Refusal('unsupported', 'there is no terminal here that could have a size')),
    end() {
      isEnding = true;
      killGroup(child.pid, 'SIGKILL');
    },
  };
}

function attach(child: ChildProcess, run: Run, ears: Ears, isEnding: () => boolean): void {
  child.stdout?.on('data', (bytes: Buffer) => ears.printed(bytes));
  child.stderr?.on('data', (bytes: Buffer) => ears.printed(bytes));
  child.stdin?.on('error', () => {});
  child.on('spawn', () => lookAfter(child.pid ?? 0));
  child.on('error', () => ears.ended({ exitCode: null, signal: null }));
  const closed = new Promise((resolve) => child.on('close', resolve));
  child.on('exit', async (exitCode) => {
    lookAway(child.pid ?? 0);
    await run.end();
    await Promise.race([closed, sleep(LAST_WORDS)]);
    ears.ended(isEnding() ? { exitCode: null, signal: 9 } : { exitCode, signal: null });
  });
}

function type(child: ChildProcess, input: string): void {
  if ((child.stdin?.writableLength ?? 0) > MAX_TYPED) {
    throw new Refusal('rate_limited', 'the program does not read its input; wait, or send it a signal');
  }
  child.stdin?.write(input);
}

/** Who leads the new session, and which terminal it has. */
function leader(child: ChildProcess): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    let said = '';
    const fail = (why: string) => {
      clearTimeout(late);
      killGroup(child.pid, 'SIGKILL');
      reject(new Refusal('failed', why));
    };
    const late = setTimeout(() => fail('the terminal was not there in time'), STARTING);
    child.on('error', (error) => fail(`cannot open a terminal: ${error.message}`));
    // Not before all was read: what ends at once has said who it was.
    const ended = () => fail('the terminal has ended at once');
    child.on('close', ended);
    child.stdio[3]?.on('data', (bytes: Buffer) => {
      said += bytes.toString('utf8');
      const found = /^(\d+) (\S+)\n/.exec(said);
      if (found === null) return;
      clearTimeout(late);
      child.off('close', ended);
      resolve([Number(found[1]), found[2] ?? '']);
    });
  });
}

let scriptIsThere: boolean | undefined;

function isScriptThere(): boolean {
  if (scriptIsThere === undefined) {
    try {
      scriptIsThere = execFileSync('script', ['--version'], { timeout: 2_000 }).toString().includes('util-linux');
    } catch {
      scriptIsThere = false;
    }
  }
  return scriptIsThere;
}

/** The shell would only say on the screen that there is no such program. */
function refuseMissing(program: string, cwd: string, env: NodeJS.ProcessEnv): void {
  const isPath = program.includes('/');
  const folders = isPath ? [isAbsolute(program) ? '' : cwd] : (env['PATH'] ?? '').split(delimiter);
  const isThere = folders.some((folder) => {
    try {
      accessSync(join(folder, program), modes.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (!isThere) throw new Refusal('not_found', `command ${JSON.stringify(program)} not found on the editor's PATH`);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
