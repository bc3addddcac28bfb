// Children in groups of their own: how they end, and that nothing of theirs is left.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { attend } from '../src/command/child';
import { startChild } from '../src/terminal/child';
import { History } from '../src/terminal/history';
import type { Status } from '../src/terminal/program';

/** A token as the editor has them; only what is used of it. */
function token() {
  const heard: (() => void)[] = [];
  const stop = {
    isCancellationRequested: false,
    onCancellationRequested(listener: () => void) {
      heard.push(listener);
      return { dispose: () => {} };
    },
  };
  return { stop: stop as unknown as Parameters<typeof attend>[1], cancel: () => heard.forEach((one) => one()) };
}

const HERE = { cwd: process.cwd(), env: {}, patience: 20_000 };

async function until(what: string, isSo: () => boolean): Promise<void> {
  for (const late = Date.now() + 10_000; !isSo();) {
    assert.ok(Date.now() < late, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('a command tells what it prints and how it ends', async () => {
  const ended = await attend({ ...HERE, words: ['sh', '-c', 'echo out; echo err >&2; exit 3'] }, token().stop);
  assert.deepEqual([ended.exitCode, ended.signal, ended.timedOut], [3, null, false]);
  assert.deepEqual([ended.out.told().text, ended.err.told().text], ['out\n', 'err\n']);
});

test('a program that is none is not found', async () => {
  await assert.rejects(attend({ ...HERE, words: ['no-such-program'] }, token().stop), { code: 'not_found' });
});

// whatever a command has started ends with it, also what has left its group and its session.
test('nothing that a command has started is left', async () => {
  const { stop, cancel } = token();
  let said = '';
  const run = attend({ ...HERE, words: ['sh', '-c', 'setsid sleep 100 & echo $!; sleep 100 & echo $!; wait'] }, stop, {
    printed: (bytes) => void (said += bytes.toString()),
  });
  await until('both have begun', () => said.split('\n').length === 3);
  const pids = said.trim().split('\n').map(Number);
  assert.ok(pids.every(isAlive), said);
  cancel();
  assert.equal((await run).signal, 9);
  await until('both have ended', () => !pids.some(isAlive));
});

test('a command whose time is up is ended', async () => {
  const ended = await attend({ ...HERE, words: ['sleep', '100'], patience: 100 }, token().stop);
  assert.deepEqual([ended.exitCode, ended.timedOut], [null, true]);
});

// The extension's host is killed: nobody is left who could end what it runs. Another copy of this file stands for it.
if (process.env['HOST'] === 'yes') {
  // The job has a group of its own in the session.
  const words = ['sh', '-c', 'set -m; sleep 100 & echo host $!; wait'];
  attend({ ...HERE, words }, token().stop, { printed: (bytes) => process.stdout.write(bytes) });
} else {
  test('what runs ends with the process that runs it', async () => {
    const env = { ...process.env, HOST: 'yes' };
    const host = spawn(process.execPath, [__filename], { stdio: ['ignore', 'pipe', 'ignore'], env });
    let said = '';
    host.stdout.on('data', (bytes: Buffer) => void (said += bytes.toString()));
    await until('it runs', () => /host \d+\n/.test(said));
    const pid = Number(/host (\d+)/.exec(said)?.[1]);
    assert.ok(isAlive(pid));
    host.kill('SIGKILL');
    await until('it has ended, too', () => !isAlive(pid));
  });
}

test('a program has a terminal of its size, and what is typed reaches it', async () => {
  const history = new History();
  let status: Status | undefined;
  const ears = {
    printed: (bytes: Buffer) => history.push(bytes),
    executed: () => {},
    ended: (how: Status) => void (status = how),
  };
  const wanted = { words: ['sh'], cwd: process.cwd(), env: {}, size: { rows: 31, cols: 91 } };
  const program = await startChild(wanted, ears);
  const printed = () => history.last(1 << 20, true).text;
  assert.equal(program.isTty, true);
  program.type('stty size\n');
  await until('the size is told', () => printed().includes('31 91'));
  await program.resize({ rows: 7, cols: 77 });
  program.type('stty size; exit 4\n');
  await until('it has ended', () => status !== undefined);
  assert.match(printed(), /7 77/);
  assert.deepEqual(status, { exitCode: 4, signal: null });
});

test('a program that ends at once has been there', async () => {
  const ends: Status[] = [];
  const ears = { printed: () => {}, executed: () => {}, ended: (how: Status) => void ends.push(how) };
  await startChild({ words: ['true'], cwd: process.cwd(), env: {}, size: { rows: 5, cols: 50 } }, ears);
  await until('it has ended', () => ends.length > 0);
  assert.deepEqual(ends, [{ exitCode: 0, signal: null }]);
});
