// What a terminal and a command have printed, as much as is kept.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HALF, Output } from '../src/command/output';
import { History, MAX_KEPT } from '../src/terminal/history';

test('offsets stay what they were, and what is gone is counted', () => {
  const history = new History();
  history.push(Buffer.from('hello '));
  history.push(Buffer.from('world'));
  assert.deepEqual(history.after(6, 100, true), { text: 'world', next: 11, leftOut: 0 });
  assert.deepEqual(history.after(0, 5, true), { text: 'hello', next: 5, leftOut: 0 });
  assert.deepEqual(history.after(11, 5, true), { text: '', next: 11, leftOut: 0 });
  assert.equal(history.after(99, 5, true).next, 11, 'an offset that never was');
  history.push(Buffer.alloc(MAX_KEPT - 5, '.'));
  assert.deepEqual(history.after(0, 6, true), { text: 'world.', next: 12, leftOut: 6 });
  history.push(Buffer.alloc(3 * MAX_KEPT, '-'));
  assert.deepEqual([history.bytes().length, history.end], [MAX_KEPT, 4 * MAX_KEPT + 6]);
  const last = history.last(2, true);
  assert.deepEqual([last.text, last.next, last.leftOut], ['--', history.end, history.end - 2]);
});

test('many small pieces are one history', () => {
  const history = new History();
  for (let i = 0; i < 5000; i += 1) history.push(Buffer.from(`${i}\n`));
  assert.equal(history.after(0, 20, true).text, '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n');
  assert.equal(history.last(5, true).text, '4999\n');
});

test('a letter is given whole', () => {
  const history = new History();
  const letter = Buffer.from('ü');
  history.push(Buffer.from('aé'));
  history.push(letter.subarray(0, 1));
  assert.deepEqual(history.after(0, 2, true), { text: 'a', next: 1, leftOut: 0 });
  assert.deepEqual(history.after(1, 100, true), { text: 'é', next: 3, leftOut: 0 });
  assert.deepEqual(history.after(3, 100, true), { text: '', next: 3, leftOut: 0 });
  assert.deepEqual(history.after(3, 100, false), { text: '\ufffd', next: 4, leftOut: 0 });
  history.push(letter.subarray(1));
  assert.equal(history.after(3, 100, true).text, 'ü');
  assert.equal(history.last(3, true).text, 'ü', 'not from the middle of é');
  assert.equal(history.after(1, 1, true).next, 2, 'it comes on even so');
});

test('the beginning and the end of an output are kept, and the rest is counted', () => {
  const output = new Output();
  output.take(Buffer.from('first'));
  for (let i = 0; i < 40; i += 1) output.take(Buffer.alloc(64 << 10, '.'));
  output.take(Buffer.from('last'));
  const { text, leftOut } = output.told();
  assert.ok(text.startsWith('first.') && text.endsWith('.last'));
  assert.equal(leftOut, 40 * (64 << 10) + 9 - 2 * HALF);
  assert.ok(text.includes(`\n[… ${leftOut} bytes left out …]\n`));
});

test('lines are shown one by one, the last also if it has no end', () => {
  const lines: string[] = [];
  const output = new Output((line) => lines.push(line));
  ['one\ntw', 'o\r\n\nthr', 'ee'].forEach((piece) => output.take(Buffer.from(piece)));
  output.end();
  assert.deepEqual(lines, ['one', 'two', '', 'three']);
  assert.equal(output.told().text, 'one\ntwo\r\n\nthree');
});
