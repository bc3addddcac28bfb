// What a terminal shows of what was printed.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { draw } from '../src/terminal/drawing';

interface Drawn {
  readonly text: string;
  readonly cursor: { readonly line: number; readonly character: number };
  readonly is_cursor_hidden: boolean;
}

function drawn(printed: string, rows = 3, cols = 10): Drawn {
  return draw({ rows, cols }, Buffer.from(printed)) as Drawn;
}

test('what is overwritten is not seen', () => {
  const { text, cursor } = drawn('one\r\ntwo\x1b[1;1HONE\x1b[2;1H\x1b[K\x1b[31mred\x1b[0m');
  assert.equal(text, 'ONE\nred');
  assert.deepEqual(cursor, { line: 1, character: 3 });
});

test('only the last rows are seen', () => {
  const printed = Array.from({ length: 100 }, (_, i) => `${i}\r\n`).join('');
  assert.equal(drawn(printed).text, '98\n99');
});

test('a long line is one line', () => {
  assert.equal(drawn('abcdefghijklmno').text, 'abcdefghijklmno');
  assert.deepEqual(drawn('abcdefghij').cursor, { line: 0, character: 9 }, 'it waits at the end for the next letter');
});

test('a program that has the whole screen gives it back', () => {
  assert.equal(drawn('before\x1b[?1049h\x1b[?25l\x1b[Hfull').text, 'full');
  assert.equal(drawn('before\x1b[?25l').is_cursor_hidden, true);
  const { text, cursor } = drawn('before\x1b[?1049h\x1b[Hfull\x1b[?1049l');
  assert.deepEqual([text, cursor], ['before', { line: 0, character: 6 }]);
});

test('lines and letters are put in and taken out', () => {
  assert.equal(drawn('1\r\n2\r\n3\x1b[2;1H\x1b[Lx').text, '1\nx\n2');
  assert.equal(drawn('1\r\n2\r\n3\x1b[1;1H\x1b[M').text, '2\n3');
  assert.equal(drawn('1\r\n2\r\n3\x1b[2;3r\x1b[3;1H\nx').text, '1\n3\nx', 'only what scrolls');
  assert.equal(drawn('abcdef\x1b[1;2H\x1b[2P').text, 'adef');
  assert.equal(drawn('abc\x1b[1;2H\x1b[2@').text, 'a  bc');
  assert.equal(drawn('abc\x1b[2J\x1b[HX').text, 'X');
});

test('titles are not part of it, and wide letters take two columns', () => {
  assert.equal(drawn('\x1b]0;title\x07\x1b]633;C\x07hi\x1b(B').text, 'hi');
  assert.deepEqual([drawn('日本').text, drawn('日本').cursor.character], ['日本', 4]);
});

test('nothing that is printed breaks it', () => {
  const odd =
    '\x1b[999;999Hx\x1b[999A\x1b[999D\x1b[999P\x1b[999@\x1b[999L\x1b[999M\x1b[5;2r\n\n\n\x1bM\x1b[;;;H\x1b[\x1b]x\x1b[?h\x1b[1J\x1b[9K\b\b\b\t\t\t\t\x1bc日';
  for (let length = 0; length <= odd.length; length += 1) {
    for (const [rows, cols] of [
      [1, 1],
      [2, 3],
      [24, 80],
    ] as const)
      drawn(odd.slice(0, length), rows, cols);
    drawn(odd.slice(length));
  }
});
