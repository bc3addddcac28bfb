import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Args } from '../src/args';
import { askedEdits, placed, refuseBlind } from '../src/asked';
import { applied, difference, offsets, withBreaks } from '../src/edits';
import { History } from '../src/history';
import { lineCount, Lines } from '../src/place';

test('places count lines and UTF-16 units', () => {
  const lines = new Lines('a😀b\r\nc\rd\n');
  assert.equal(lines.count, 4);
  assert.equal(lines.offset({ line: 0, character: 3 }), 3);
  assert.match(String(lines.offset({ line: 0, character: 2 })), /within a character/);
  assert.equal(lines.offset({ line: 0, character: 99 }), 4);
  assert.equal(lines.offset({ line: 1, character: 0 }), 6);
  assert.equal(lines.offset({ line: 3, character: 0 }), 10);
  assert.match(String(lines.offset({ line: 4, character: 0 })), /there is no line 4; the last is 3/);
  assert.deepEqual(lines.place(5), { line: 0, character: 4 });
  assert.deepEqual(lines.place(8), { line: 2, character: 0 });
  assert.deepEqual(lines.nearest({ line: 0, character: 2 }), { line: 0, character: 1 });
  assert.deepEqual(lines.nearest({ line: 9, character: 9 }), { line: 3, character: 0 });
});

test('a line break ends a line and begins none', () => {
  assert.deepEqual(['', 'a', 'a\n', 'a\nb', '\n\n'].map(lineCount), [0, 1, 1, 2, 2]);
});

test('all edits are about the text before any of them, and what undoes them leads back', () => {
  const text = 'one two three\n';
  const edits = [
    { start: 8, end: 13, newText: '3' },
    { start: 0, end: 3, newText: 'first' },
    { start: 4, end: 4, newText: '<' },
    { start: 4, end: 4, newText: '>' },
  ];
  const made = applied(text, edits);
  assert.equal(made.text, 'first <>two 3\n');
  assert.equal(applied(made.text, made.back).text, text);
  assert.throws(
    () =>
      applied(text, [
        { start: 0, end: 4, newText: '' },
        { start: 3, end: 5, newText: '' },
      ]),
    /edits 0 and 1 overlap/,
  );
});

test('random edits lead back to where they began', () => {
  let seed = 7;
  const random = (most: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % most;
  for (let round = 0; round < 500; round += 1) {
    const text = Array.from({ length: random(30) }, () => 'ab\nß'[random(4)]).join('');
    const cuts = Array.from({ length: random(4) * 2 }, () => random(text.length + 1)).sort((a, b) => a - b);
    const edits = [];
    for (let i = 0; i + 1 < cuts.length; i += 2)
      edits.push({ start: cuts[i] ?? 0, end: cuts[i + 1] ?? 0, newText: 'xy'.slice(random(3)) });
    const made = applied(text, edits);
    assert.equal(applied(made.text, made.back).text, text);
    const edit = difference(text, made.text);
    assert.equal(applied(text, [edit]).text, made.text);
  }
});

test('a range that is none is refused', () => {
  const at = (line: number, character: number): { line: number; character: number } => ({ line, character });
  assert.throws(
    () => offsets('a\n', [{ range: { start: at(0, 1), end: at(0, 0) }, newText: '' }]),
    /ends before it starts/,
  );
  assert.throws(
    () => offsets('a\n', [{ range: { start: at(7, 0), end: at(7, 0) }, newText: '' }]),
    /edit 0: there is no line 7/,
  );
  assert.equal(withBreaks('a\r\nb\rc\n', '\r\n'), 'a\r\nb\r\nc\r\n');
});

test('words to be replaced stand there once', () => {
  const asked = (given: Record<string, unknown>): ReturnType<typeof placed> =>
    placed('x aa x', askedEdits(new Args(given)) ?? []);
  assert.deepEqual(asked({ old_text: 'aa', new_text: 'b' }), [{ start: 2, end: 4, newText: 'b' }]);
  assert.throws(() => asked({ old_text: 'x', new_text: 'y' }), /more than once/);
  assert.throws(() => asked({ old_text: 'z', new_text: 'y' }), /is not in the text/);
  assert.throws(() => asked({ old_text: '', new_text: 'y' }), /`old_text` is empty/);
  assert.throws(() => asked({ edits: [] }), /must hold 1 to 1000 edits, not 0/);
  assert.throws(() => asked({ edits: [{ new_text: 'y' }] }), /edit 0: it needs a `range` or an `old_text`/);
  assert.throws(() => asked({ edits: [{}], old_text: 'x' }), /not both/);
  assert.throws(() => asked({ old_text: 'x' }), /edit 0: `new_text` is missing/);
});

test('a range needs a version, or the words that stand there', () => {
  const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } };
  const edits = askedEdits(new Args({ edits: [{ range, new_text: '' }] })) ?? [];
  assert.throws(() => refuseBlind(edits, false), /about one version/);
  refuseBlind(edits, true);
  const sure = askedEdits(new Args({ edits: [{ range, old_text: 'x', new_text: '' }] })) ?? [];
  refuseBlind(sure, false);
  assert.throws(() => placed('y', sure), /is not `old_text`/);
});

test('changes are undone and redone, and a new change ends what can be redone', () => {
  const history = new History();
  let text = 'a';
  const edit = (start: number, end: number, newText: string): void => {
    const made = applied(text, [{ start, end, newText }]);
    history.changed(made.back);
    text = made.text;
  };
  const go = (way: 'undo' | 'redo', steps: number): void => {
    const retraced = history.retraced(text, way, steps);
    retraced.walk();
    text = retraced.text;
  };
  edit(1, 1, 'b');
  edit(2, 2, 'c');
  edit(0, 1, '');
  assert.equal(text, 'bc');
  go('undo', 2);
  assert.equal(text, 'ab');
  go('redo', 1);
  assert.equal(text, 'abc');
  go('undo', 2);
  go('redo', 3);
  assert.equal(text, 'bc');
  go('undo', 1);
  edit(0, 0, 'z');
  assert.throws(() => history.retraced(text, 'redo', 1), /0 changes can be redone, not 1/);
  history.clear();
  assert.throws(() => history.retraced(text, 'undo', 1), /0 changes can be undone, not 1/);
});
