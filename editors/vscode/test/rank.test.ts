import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rankOf, typedIn } from '../src/language/rank';

// The same as crates/editor/src/lsp/complete.rs has.
test('what was typed chooses and orders', () => {
  assert.equal(typedIn('let größe = a.Wört'), 'wört');
  assert.equal(typedIn('a.'), '');
  assert.equal(typedIn('$x'), '$x');
  const ranked = ['unwrap_or', 'or_unwrap', 'umbrella', 'ultimate_n', 'else'].map((word) => rankOf(word, 'un'));
  assert.deepEqual(ranked, [0, 1, undefined, 2, undefined]);
  assert.equal(rankOf('anything', ''), 0);
});
