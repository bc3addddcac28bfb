import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { Doing } from '../src/doing';

beforeEach(() => mock.timers.enable({ apis: ['Date'], now: 1_000_000 }));
afterEach(() => mock.timers.reset());

test('an event is whose command brought it about, once', () => {
  const doing = new Doing();
  const isUntold = doing.note('cursor_moved', '/w/a', 's');
  assert.deepEqual(doing.take('cursor_moved', '/w/b'), {});
  assert.deepEqual(doing.take('cursor_moved', '/w/a'), { by: 's' });
  assert.deepEqual(doing.take('cursor_moved', '/w/a'), {});
  assert.equal(isUntold(), false);
});

test('what no event came of is told by who did it, however long it took', () => {
  const doing = new Doing();
  const isUntold = doing.note('viewport_changed', '/w/a', 's');
  mock.timers.tick(60_000);
  assert.equal(isUntold(), true);
  assert.deepEqual(doing.take('viewport_changed', '/w/a'), {});
});

test("what happens much later is nobody's doing, and not that of whoever came before", () => {
  const doing = new Doing();
  doing.note('tab_switched', '/w/a', 's');
  mock.timers.tick(10_001);
  assert.deepEqual(doing.take('tab_switched', '/w/a'), {});
  const first = doing.note('cursor_moved', '/w/a', 's');
  doing.note('cursor_moved', '/w/a', 't');
  assert.equal(first(), false);
  assert.deepEqual(doing.take('cursor_moved', '/w/a'), { by: 't' });
});
