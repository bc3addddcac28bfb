import assert from 'node:assert/strict';
import { test } from 'node:test';
import { told } from '../src/search/told';
import { faultOf, find, lineFrom } from '../src/search/words';

test('every place is found with its line, in UTF-16 units', () => {
  const { hits, isCut } = find('one two\nTwo\r\n  𝔄two two\n', 'two', false, 10);
  const starts = hits.map(({ range }) => [range.start.line, range.start.character]);
  assert.deepEqual(starts, [
    [0, 4],
    [2, 4],
    [2, 8],
  ]);
  assert.deepEqual(
    hits.map((hit) => hit.line_text),
    ['one two', '  𝔄two two', '  𝔄two two'],
  );
  assert.equal(isCut, false);
  assert.equal(find('one two\nTwo\n', 'TWO', true, 10).hits.length, 2);
});

test('words are words, whatever they would mean in an expression', () => {
  assert.equal(find('a.c abc $1 [x-y] \\d a/b', 'a.c', false, 10).hits.length, 1);
  for (const words of ['$1', '[x-y]', '\\d', 'a/b', '-'])
    assert.equal(find('a.c abc $1 [x-y] \\d a/b', words, false, 10).hits.length, 1, words);
});

test('what is cut says so', () => {
  const { hits, isCut } = find('x x x', 'x', false, 2);
  assert.deepEqual([hits.length, isCut], [2, true]);
});

test('what is no part of a line is not looked for', () => {
  assert.equal(typeof faultOf(''), 'string');
  assert.equal(typeof faultOf('a\nb'), 'string');
  assert.equal(typeof faultOf('a'.repeat(9000)), 'string');
  assert.equal(faultOf('a'), undefined);
});

test('a line is shown as far as a person would read', () => {
  assert.equal([...lineFrom(`${'𝔄'.repeat(400)}\n`, 0)].length, 300);
  assert.equal(lineFrom('ab\r\ncd', 4), 'cd');
});

test('what ripgrep finds by bytes is told by UTF-16 units, over several lines', () => {
  const lines = Buffer.from('ä𝔄 cat\nünd cat\n');
  const at = (word: string, from: number): number => lines.indexOf(word, from);
  const second = at('cat', 12);
  const found = {
    path: 'a',
    lines,
    line: 4,
    offset: 0,
    places: [
      [at('cat', 0), at('cat', 0) + 3],
      [second, second + 4],
    ] as const,
  };
  const hits = told(found, '/w/a', 10);
  assert.deepEqual(hits[0]?.range, { start: { line: 4, character: 4 }, end: { line: 4, character: 7 } });
  assert.deepEqual(hits[1]?.range, { start: { line: 5, character: 4 }, end: { line: 6, character: 0 } });
  assert.deepEqual(
    hits.map((hit) => hit.line_text),
    ['ä𝔄 cat', 'ünd cat'],
  );
});
