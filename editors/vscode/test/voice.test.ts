import assert from 'node:assert/strict';
import { afterEach, beforeEach, mock, test } from 'node:test';
import type { FromPlugin } from '../src/protocol';
import { Voice } from '../src/voice';

let sent: FromPlugin[] = [];
let isRead = true;

function voice(): Voice {
  const one = new Voice(() => [{ path: '/w/a', version: 1, is_dirty: false }]);
  one.connected((message) => {
    if (isRead) sent.push(message);
    return isRead;
  });
  return one;
}

beforeEach(() => {
  [sent, isRead] = [[], true];
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
});
afterEach(() => mock.timers.reset());

const events = (): unknown[] =>
  sent.flatMap((message) => (message.type === 'event' ? [[message.seq, message.data['n']]] : []));

test('events are numbered from one in each connection, after the state', () => {
  const one = voice();
  one.tell('x', '/w/a', { n: 1 });
  one.tell('x', undefined, { n: 2 });
  assert.deepEqual(events(), [
    [1, 1],
    [2, 2],
  ]);
  assert.deepEqual(sent[0], { type: 'state', seq: 0, buffers: [{ path: '/w/a', version: 1, is_dirty: false }] });
  one.connected((message) => sent.push(message) > 0);
  one.tell('x', '/w/a', { n: 3 });
  assert.deepEqual(events().at(-1), [1, 3]);
});

test('of what moves all the time the first is told at once, and then what it has come to', () => {
  const one = voice();
  const move = (n: number): void => one.tellMoving('cursor_moved', '/w/a', () => ({ n }));
  move(1);
  move(2);
  move(3);
  assert.deepEqual(events(), [[1, 1]]);
  mock.timers.tick(20);
  assert.deepEqual(events(), [
    [1, 1],
    [2, 3],
  ]);
  move(4);
  mock.timers.tick(20);
  assert.deepEqual(events(), [
    [1, 1],
    [2, 3],
    [3, 4],
  ]);
  mock.timers.tick(20);
  move(5);
  assert.deepEqual(events().at(-1), [4, 5]);
});

test('what is too much is dropped, and the state follows', () => {
  const one = voice();
  for (let n = 0; n < 500; n += 1) one.tell('x', '/w/a', { n });
  assert.equal(events().length, 400);
  mock.timers.tick(500);
  assert.deepEqual(sent.at(-1), { type: 'state', seq: 400, buffers: [{ path: '/w/a', version: 1, is_dirty: false }] });
});

test('what is not read is dropped, and the state follows once it is', () => {
  const one = voice();
  isRead = false;
  one.tell('x', '/w/a', { n: 1 });
  mock.timers.tick(600);
  assert.equal(sent.length, 1);
  isRead = true;
  mock.timers.tick(600);
  assert.equal(sent.at(-1)?.type, 'state');
  one.tell('x', '/w/a', { n: 2 });
  assert.deepEqual(events(), [[1, 2]]);
});

test('with nobody there nothing is told, now or later', () => {
  const one = voice();
  one.tellMoving('cursor_moved', '/w/a', () => ({ n: 1 }));
  one.tellMoving('cursor_moved', '/w/a', () => ({ n: 2 }));
  one.disconnected();
  one.tell('x', '/w/a', { n: 3 });
  mock.timers.tick(1_000);
  assert.deepEqual(events(), [[1, 1]]);
});
