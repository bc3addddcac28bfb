import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Changed, Text } from '../src/ledger';
import { Mirror } from '../src/mirror';
import type { Texts } from '../src/texts';

function text(version: number, content: string, isDirty = true): Text {
  return { path: '/w/a', version, isDirty, document: { getText: () => content } } as unknown as Text;
}

function typed(version: number, content: string, more: Partial<Changed> = {}): Changed {
  const at = { line: 0, character: 0 };
  const edits = [{ range: { start: at, end: at }, newText: content.slice(0, 1) }];
  return { text: text(version, content), base: version - 1, edits, by: undefined, reason: 'edit', ...more };
}

const mirror = (...open: Text[]): Mirror => new Mirror({ all: () => open } as unknown as Texts);

//
test('the daemon gets an unsaved text whole once, and then what changes', () => {
  const one = mirror();
  const first = one.changed(typed(2, 'a'));
  assert.deepEqual([first['text'], first['base_version'], first['is_dirty']], ['a', 1, true]);
  const second = one.changed(typed(3, 'ba'));
  assert.deepEqual([second['text'], second['base_version']], [undefined, 2]);
  assert.equal((second['edits'] as unknown[]).length, 1);
  // A gap, or several changes in one, is told whole.
  assert.equal(one.changed(typed(5, 'cba'))['text'], 'cba');
  const several = one.changed(typed(6, 'dcba', { base: undefined }));
  assert.deepEqual([several['text'], several['edits']], ['dcba', undefined]);
});

test('after the state only changes are told', () => {
  const one = mirror(text(7, 'x'));
  assert.deepEqual(one.state(), [{ path: '/w/a', version: 7, is_dirty: true, text: 'x' }]);
  assert.equal(one.changed(typed(8, 'yx'))['text'], undefined);
});

test('what is saved begins anew', () => {
  const one = mirror();
  one.changed(typed(2, 'a'));
  one.saved(text(2, 'a', false));
  assert.equal(one.changed(typed(3, 'ba'))['text'], 'ba');
});

test('edits that are not told from the last to the first, or are too long, are told as a text', () => {
  const one = mirror();
  one.changed(typed(2, 'a'));
  const at = (line: number): Changed['edits'][number] => {
    const place = { line, character: 0 };
    return { range: { start: place, end: place }, newText: 'x' };
  };
  assert.equal(one.changed(typed(3, 'b', { edits: [at(2), at(1)] }))['text'], undefined);
  assert.equal(one.changed(typed(4, 'c', { edits: [at(1), at(2)] }))['text'], 'c');
  const long = [{ ...at(0), newText: 'x'.repeat(9_000) }];
  const told = one.changed(typed(5, 'd', { edits: long }));
  assert.deepEqual([told['text'], told['edits']], ['d', undefined]);
});

test('that a text became unsaved is told if it was not', () => {
  const one = mirror();
  one.changed(typed(2, 'a', { text: text(2, 'a', false) }));
  assert.equal(one.dirtied(text(2, 'a', false)), undefined);
  assert.equal(one.dirtied(text(2, 'a'))?.['text'], 'a');
  assert.equal(one.dirtied(text(2, 'a')), undefined);
});

test('more unsaved text than a message holds is named without it', () => {
  const large = 'x'.repeat(4 << 20);
  const [first, second] = mirror(text(1, large), text(1, large)).state();
  assert.deepEqual([first?.text?.length, second?.text], [large.length, undefined]);
});
