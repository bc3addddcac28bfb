// What agents run, as it is drawn in terminals that only show.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

import type { Show } from '../src/protocol';
import { Runs } from '../src/runs';
import { Screen } from '../src/screen';
import { window, type Shown } from './vscode';

const show = (id: number, more: Partial<Show> = {}): Show => ({
  type: 'show',
  id,
  kind: 'command',
  title: 'fixer: cargo test',
  command: 'cargo test',
  path: '/w',
  ...more,
});

/** What a screen has drawn and how it was called and sized, from when the editor opened it. */
function seen(screen: Screen): { text: string; names: string[]; sizes: unknown[] } {
  const all = { text: '', names: [] as string[], sizes: [] as unknown[] };
  screen.onDidWrite((text) => void (all.text += text));
  screen.onDidChangeName((name) => void all.names.push(name));
  screen.onDidOverrideDimensions((size) => void all.sizes.push(size));
  screen.open();
  return all;
}

const plain = (text: string): string => text.replace(/\x1b\[[?\d;]*[a-z]/g, '');

beforeEach(() => {
  window.terminals = [];
  window.activeTerminal = undefined;
});

test('what is printed before the editor opens the terminal is drawn first, and as it is', () => {
  const screen = new Screen();
  screen.begin(show(1));
  screen.write('\x1b[32mok\x1b[0m\r\n');
  const drawn = seen(screen);
  screen.write('more');
  assert.ok(drawn.text.includes('\x1b[32mok\x1b[0m\r\nmore'), drawn.text);
  assert.equal(plain(drawn.text), '$ cargo test  in /w\r\nok\r\nmore');
  screen.end('fixer: cargo test', { exit_code: 101, note: 'its time was over' });
  assert.ok(plain(drawn.text).endsWith('more\r\n[ended, exit code 101, its time was over]\r\n'), drawn.text);
  assert.deepEqual(drawn.names, ['fixer: cargo test', '✗ fixer: cargo test']);
});

test('of very much that nobody has opened the end is kept, from a whole line on', () => {
  const screen = new Screen();
  for (let i = 0; i < 100_000; i += 1) screen.write(`line ${i}\r\n`);
  const { text } = seen(screen);
  assert.ok(text.length < (1 << 18) + 20 && /^\[…\]\r\nline \d+\r\n/.test(plain(text)), text.slice(0, 40));
  assert.ok(text.endsWith('line 99999\r\n'));
});

test('a terminal is as large as it is where it runs, and has no line of ours above it', () => {
  const screen = new Screen();
  screen.begin(show(1, { kind: 'terminal', rows: 24, cols: 80 }));
  const drawn = seen(screen);
  screen.resize(40, 120);
  assert.deepEqual(drawn.sizes, [
    { rows: 24, columns: 80 },
    { rows: 40, columns: 120 },
  ]);
  assert.equal(drawn.text, '');
});

test('a screen takes no keys', () => {
  assert.equal('handleInput' in new Screen(), false);
});

test('each run has a terminal of its own, and what is run again is where it was', () => {
  const runs = new Runs();
  runs.begin(show(1));
  runs.begin(show(2));
  runs.begin(show(3, { title: 'other: ls' }));
  assert.deepEqual(
    window.terminals.map(({ name }) => name),
    ['fixer: cargo test', 'fixer: cargo test', 'other: ls'],
  );
  const first = seen((window.terminals[0] as Shown).pty as Screen);
  runs.print({ type: 'show_output', id: 1, text: 'one\r\n' });
  runs.print({ type: 'show_output', id: 2, text: 'two\r\n' });
  runs.print({ type: 'show_output', id: 9, text: 'nobody\r\n' });
  runs.end({ id: 1, exit_code: 0 });
  runs.begin(show(4));
  runs.print({ type: 'show_output', id: 4, text: 'again\r\n' });
  assert.equal(window.terminals.length, 3);
  const expected = '$ cargo test  in /w\r\none\r\n[ended, exit code 0]\r\n$ cargo test  in /w\r\nagain\r\n';
  assert.equal(plain(first.text), expected);
  assert.deepEqual(first.names, ['fixer: cargo test', '✓ fixer: cargo test', 'fixer: cargo test']);
});

test('of what is over the last few are kept, and the one that the person looks at', () => {
  const runs = new Runs();
  for (let id = 1; id <= 8; id += 1) {
    runs.begin(show(id, { title: `run ${id}` }));
    if (id === 1) window.activeTerminal = window.terminals[0];
    runs.end({ id, exit_code: 0 });
  }
  const left = window.terminals.filter(({ isGone }) => !isGone).map(({ name }) => name);
  assert.deepEqual(left, ['run 1', 'run 6', 'run 7', 'run 8']);
});

test('what the person closes is forgotten, and what a lost connection cuts off says so', () => {
  const runs = new Runs();
  runs.begin(show(1));
  runs.begin(show(2, { title: 'other: ls' }));
  const [first, second] = window.terminals.map(({ pty }) => pty as Screen);
  assert.ok(first && second);
  const [closed, cut] = [seen(first), seen(second)];
  first.close();
  runs.print({ type: 'show_output', id: 1, text: 'nobody sees it' });
  runs.lose();
  assert.ok(!closed.text.includes('nobody sees it'));
  assert.ok(plain(cut.text).endsWith('[ended, or not; the connection to Prism was lost]\r\n'), cut.text);
});
