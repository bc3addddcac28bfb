import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { placesAfter, shift } from '../src/person/places';
import { applied, placesOf } from '../src/person/unified';
import { keyOf, readSnapshot, waiting } from '../src/person/views';
import { escaped, label, left, remaining, scopeInWords, span, visible } from '../src/person/words';

test('scopes are said in the words of docs/gate.md', () => {
  const rows = [...readFileSync('../../docs/gate.md', 'utf8').matchAll(/^\| `([a-z]+:[a-z]+)` \| ([^|]+) \|/gm)];
  assert.ok(rows.length >= 40, `${rows.length} scopes in the table`);
  for (const [, scope, words] of rows) assert.equal(scopeInWords(scope ?? ''), words?.trim());
});

test('a diff is applied only to the text that it is about', () => {
  const before = 'one\ntwo\nthree\nfour\nfive\n';
  const unified = '--- a\n+++ a\n@@ -1,3 +1,4 @@\n one\n-two\n+TWO\n+2\n three\n@@ -5 +6 @@\n-five\n+FIVE\n\\ No newline at end of file\n';
  assert.equal(applied(before, unified), 'one\nTWO\n2\nthree\nfour\nFIVE');
  assert.equal(applied(before.replace('two', 'zwei'), unified), undefined);
  assert.equal(applied('', '--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+one\n'), 'one\n');
  assert.equal(applied(before, unified.slice(0, -50)), undefined, 'a part of a diff is none');
  assert.equal(applied(before, '--- a\n+++ a\n'), before, 'no line differs');
  assert.equal(applied('-- x\n', '--- a\n+++ a\n@@ -1 +0,0 @@\n--- x\n'), '', 'a removed line that looks like a head');
  assert.equal(placesOf('Not a text: 3 bytes before'), undefined);
  assert.equal(placesOf(unified)?.after.includes('TWO'), true);
});

test('places move with the text around them', () => {
  const place = { start: 10, end: 20 };
  shift(place, { rangeOffset: 0, rangeLength: 2, text: 'abcd' });
  assert.deepEqual(place, { start: 12, end: 22 });
  shift(place, { rangeOffset: 22, rangeLength: 0, text: 'behind it' });
  assert.deepEqual(place, { start: 12, end: 22 });
  shift(place, { rangeOffset: 15, rangeLength: 1, text: 'within' });
  assert.deepEqual(place, { start: 12, end: 27 });
  const two = placesAfter([
    { rangeOffset: 8, rangeLength: 0, text: 'xy' },
    { rangeOffset: 0, rangeLength: 4, text: 'a' },
  ]);
  assert.deepEqual(two, [{ start: 0, end: 1 }, { start: 5, end: 7 }]);
});

test('what an agent writes neither hides nor looks like something else', () => {
  assert.equal(visible('echo \u202ex\u200b'), 'echo [U+202E]x[U+200B]');
  assert.equal(visible('a\nb'), 'a ⏎ b');
  assert.ok(!label('$(check) Allow').includes('$('));
  assert.equal(escaped('[x](command:y)'), '\\[x\\]\\(command:y\\)');
});

test('times are said as a person says them', () => {
  assert.deepEqual([span(900), span(3600), span(90)], ['15 min', '1 h', '90 s']);
  assert.deepEqual([remaining(92_000, 0), remaining(0, 5)], ['1:32', '0:00']);
  assert.deepEqual([left(92_000, 0), left(14 * 60_000, 0), left(0, 5)], ['1:32 left', '14 min left', 'over']);
});

test('a snapshot is read whatever is missing, and the oldest is first', () => {
  assert.deepEqual(readSnapshot({}), { requests: [], confirmations: [], grants: [], configs: [] });
  const shown = { action: 'exec_command', shown: { kind: 'command', command: 'ls' } };
  const snapshot = readSnapshot({
    requests: [{ request_id: 'r', created_at: '2026-11-16T06:00:02Z' }, null],
    confirmations: [{ confirmation_id: 'c', kind: 'action', digest: 'd', shown, created_at: '2026-11-16T06:00:01Z' }],
  });
  assert.equal(snapshot.confirmations[0]?.what, 'command');
  assert.deepEqual(waiting(snapshot).slice(1).map(keyOf), ['c d', 'r']);
});
