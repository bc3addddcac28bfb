// The table of terminals: whose they are, how many, and how they end.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Program } from '../src/terminal/program';
import { Terminals, type Terminal } from '../src/terminal/terminals';

const about = (session: string) => ({ session, line: 'sh', cwd: '/' });

/** A program that ends when it is told to. */
function program(terminal: Terminal, ends: string[] = []): Program {
  const end = () => {
    ends.push(terminal.name);
    terminal.ears.ended({ exitCode: null, signal: 9 });
  };
  return { pid: 1, isTty: true, type: () => {}, resize: () => Promise.resolve(), end };
}

const opened = (all: Terminals, session: string, ends?: string[]) => {
  return all.open(about(session), (terminal) => Promise.resolve(program(terminal, ends)));
};

test('a terminal is nobody else’s', async () => {
  const all = new Terminals();
  const one = await opened(all, 'a');
  assert.equal(all.named(one.name, 'a'), one);
  assert.throws(() => all.named(one.name, 'b'), { code: 'not_found' });
  assert.deepEqual(all.of('b'), []);
});

test('one too many is refused, and one that has ended makes room', async () => {
  const all = new Terminals();
  const first = await opened(all, 'a');
  for (let i = 1; i < 8; i += 1) await opened(all, 'a');
  await assert.rejects(opened(all, 'a'), { code: 'rate_limited' });
  await opened(all, 'b');
  await first.end(1000);
  await opened(all, 'a');
  assert.throws(() => all.named(first.name, 'a'), { code: 'not_found' });
});

test('all end when nobody is there any more, also one that is just being opened', async () => {
  const all = new Terminals();
  const ends: string[] = [];
  await opened(all, 'a', ends);
  let start = () => {};
  const starting = all.open(about('b'), async (terminal) => {
    await new Promise<void>((resolve) => (start = resolve));
    return program(terminal, ends);
  });
  all.close();
  assert.deepEqual(ends, ['1']);
  start();
  await assert.rejects(starting, { code: 'failed' });
  assert.deepEqual(ends, ['1', '2']);
});

test('who waits for output is woken by it, and by the end', async () => {
  const all = new Terminals();
  const one = await opened(all, 'a');
  const woken = one.change(60_000);
  one.ears.printed(Buffer.from('x'));
  await woken;
  const over = one.change(60_000);
  await one.end(1000);
  await over;
  assert.deepEqual(one.read(0, 10), {
    terminal: one.name,
    output: 'x',
    next: 1,
    left_out: 0,
    is_running: false,
    exit_code: null,
    signal: 9,
  });
  assert.throws(() => one.running(), { code: 'not_found' });
});
