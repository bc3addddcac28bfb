import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Args } from '../src/args';
import { Refusal } from '../src/refusal';

/** Refused as `bad_arguments`, in these words. */
function refused(doing: () => unknown, words: RegExp): void {
  assert.throws(
    doing,
    (error) => error instanceof Refusal && error.code === 'bad_arguments' && words.test(error.message),
  );
}

test('an argument has the type that it has to be, or is refused by name', () => {
  const args = new Args({ path: 'a', n: 3, flag: true, at: { line: 1, character: 2 }, none: null, list: [1] });
  assert.equal(args.text('path'), 'a');
  assert.equal(args.number('n', 0, 5), 3);
  assert.equal(args.flag('flag'), true);
  assert.equal(args.flag('absent'), false);
  assert.deepEqual(args.position('at'), { line: 1, character: 2 });
  assert.equal(args.maybeText('none'), undefined);
  assert.deepEqual(args.list('list'), [1]);
  args.done();
  refused(() => new Args({}).text('path'), /`path` is missing: a string/);
  refused(() => new Args({ path: 3 }).text('path'), /must be a string, not a number/);
  refused(() => new Args({ n: 6 }).number('n', 0, 5), /from 0 to 5, not 6/);
  refused(() => new Args({ n: 1.5 }).number('n', 0, 5), /not 1.5/);
  refused(() => new Args({ flag: 'yes' }).flag('flag'), /true or false, not a string/);
  refused(() => new Args({ at: { line: 1 } }).position('at'), /`at` has no `character`/);
  refused(() => new Args({ at: { line: 1, character: 0, x: 1 } }).position('at'), /no argument "x"/);
  refused(() => new Args({ list: {} }).list('list'), /must be an array, not an object/);
});

test('an argument that nobody knows is refused, with those that there are', () => {
  const args = new Args({ path: 'a', lines: 3 });
  args.text('path');
  refused(() => args.done(), /no argument "lines"; it takes `path`/);
  refused(() => new Args({ a: 1 }).done(), /it takes none/);
});

test('a word is one of a few', () => {
  assert.equal(new Args({}).choice('direction', ['right', 'down']), 'right');
  assert.equal(new Args({ direction: 'down' }).choice('direction', ['right', 'down']), 'down');
  refused(() => new Args({ direction: 'up' }).choice('direction', ['right', 'down']), /"right" or "down", not "up"/);
});

test('content is text or base64, and nothing that merely looks like it', () => {
  const content = (given: object): Uint8Array | undefined => new Args({ ...given }).content('content');
  assert.deepEqual([...(content({ content: 'ä' }) ?? [])], [0xc3, 0xa4]);
  assert.deepEqual([...(content({ content: 'AAECA//+', encoding: 'base64' }) ?? [])], [0, 1, 2, 3, 255, 254]);
  assert.equal(content({}), undefined);
  refused(() => content({ content: 'AAE', encoding: 'base64' }), /not base64/);
  refused(() => content({ content: 'AA\nEC', encoding: 'base64' }), /not base64/);
  refused(() => content({ content: '', encoding: 'utf-16' }), /"utf-8" or "base64"/);
});
