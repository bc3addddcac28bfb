// A child in a process group of its own, attended to until it has ended. Whatever it has started and left in its group ends with
// it, and all of it ends when nobody waits any more: an answer that nobody gets must not leave something running.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type * as vscode from 'vscode';

import { Refusal } from '../refusal';
import { lookAfter, lookAway } from './lookout';
import { Output } from './output';
import { beginRun } from './strays';

export interface Launch {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly patience: number;
  readonly input?: string | Buffer;
}

export interface Ended {
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly timedOut: boolean;
  readonly out: Output;
  readonly err: Output;
  readonly duration: number;
}

export interface Listener {
  started?(pid: number): void;
  /** Bytes as they come, of both streams. */
  printed?(bytes: Buffer): void;
  line?(line: string): void;
}

/** How long is read on after a command has ended: somebody that has run away with the pipe must not keep us. */
const LAST_WORDS = 200;

/** Runs it to its end, its time's end, or until it is stopped. */
export function attend(launch: Launch, stop: vscode.CancellationToken, listener: Listener = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    if (stop.isCancellationRequested) return reject(new Refusal('timed_out', 'nobody waits for it any more'));
    const began = Date.now();
    const [program = '', ...rest] = launch.words;
    const [out, err] = [new Output(listener.line), new Output(listener.line)];
    const run = beginRun();
    const child = spawn(program, rest, {
      cwd: launch.cwd,
      env: environment(launch.cwd, { ...launch.env, ...run.env }),
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let timedOut = false;
    let isOver = false;
    const kill = () => killGroup(child.pid, 'SIGKILL');
    const up = setTimeout(() => {
      timedOut = true;
      kill();
    }, launch.patience);
    const stopped = stop.onCancellationRequested(kill);
    const over = (finish: () => void) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(up);
      stopped.dispose();
      child.stdout.destroy();
      child.stderr.destroy();
      finish();
    };
    const take = (output: Output) => (bytes: Buffer) => {
      output.take(bytes);
      listener.printed?.(bytes);
    };
    child.stdout.on('data', take(out));
    child.stderr.on('data', take(err));
    // Whoever does not read what it is given has said why.
    child.stdin.on('error', () => {});
    child.stdin.end(launch.input ?? '');
    child.on('spawn', () => {
      lookAfter(child.pid ?? 0);
      listener.started?.(child.pid ?? 0);
    });
    child.on('error', (error: NodeJS.ErrnoException) => over(() => reject(refusal(error, program, launch.cwd))));
    const closed = new Promise((resolve) => child.on('close', resolve));
    child.on('exit', async (code, signal) => {
      kill();
      lookAway(child.pid ?? 0);
      await run.end();
      await Promise.race([closed, sleep(LAST_WORDS)]);
      over(() => {
        out.end();
        err.end();
        const number = signal === null ? null : (constants.signals[signal] ?? null);
        const duration = Date.now() - began;
        resolve({ exitCode: timedOut ? null : code, signal: number, timedOut, out, err, duration });
      });
    });
  });
}

/** Sends a signal to a group. That there is none any more is as good. */
export function killGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended.
  }
}

/** The editor's environment, less what is its own or Prism's, and what is added. */
export function environment(cwd: string, added: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!isOwn(name) && !/^(VSCODE_|ELECTRON_|OLDPWD$)/.test(name)) env[name] = value;
  }
  return { ...env, PWD: cwd, ...added };
}

/** Prism's settings and secrets. */
export function isOwn(name: string): boolean {
  return name === 'MCP_TOKEN' || name.startsWith('PRISM_');
}

function refusal(error: NodeJS.ErrnoException, program: string, cwd: string): Refusal {
  if (error.code === 'ENOENT') {
    return new Refusal(
      'not_found',
      `command ${JSON.stringify(program)} not found on the editor's PATH, or ${cwd} is no more`,
    );
  }
  return new Refusal('failed', `cannot start ${JSON.stringify(program)}: ${error.message}`);
}
