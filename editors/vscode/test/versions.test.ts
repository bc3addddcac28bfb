import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asText, digestOf, isSameText } from '../src/digest';
import { Versions } from '../src/versions';

const NOW = 1_800_000_000_000;

// E-03
test('a version names one text and never comes twice for another', () => {
  const versions = new Versions(NOW);
  const [first, again] = [{}, {}];
  const told = (document: object, version: number, text: string): number =>
    versions.told('/a', document, version, () => digestOf(text));
  const one = told(first, 1, 'one');
  assert.equal(told(first, 1, 'one'), one);
  const two = told(first, 2, 'two');
  assert.ok(two > one);
  versions.closed('/a', first, () => digestOf('two'));
  // The editor counts from one again.
  const reopened = told(again, 1, 'other');
  assert.ok(reopened > two);
  assert.ok(told(again, 2, 'x') > reopened);
});

test('what is opened as it was closed has the version that it had', () => {
  const versions = new Versions(NOW);
  const [first, again, third] = [{}, {}, {}];
  const told = (document: object, version: number, text: string): number =>
    versions.told('/a', document, version, () => digestOf(text));
  const last = told(first, 9, 'same');
  versions.closed('/a', first, () => digestOf('same'));
  assert.equal(told(again, 1, 'same'), last);
  assert.equal(told(again, 2, 'next'), last + 1);
  // Another document without a closing in between is another text.
  assert.equal(told(third, 1, 'next'), last + 2);
});

test('a later window begins above what an earlier one has told', () => {
  const [earlier, later] = [new Versions(NOW), new Versions(NOW + 60_000)];
  assert.ok(later.told('/a', {}, 1, () => '') > earlier.told('/a', {}, 500, () => ''));
});

test('what was forgotten is not told again', () => {
  const versions = new Versions(NOW);
  const documents = Array.from({ length: 5_000 }, () => ({}));
  const first = versions.told('/0', documents[0] ?? {}, 90, () => '');
  versions.closed('/0', documents[0] ?? {}, () => 'x');
  documents.forEach((document, i) => {
    if (i === 0) return;
    versions.told(`/${i}`, document, 1, () => '');
    versions.closed(`/${i}`, document, () => 'x');
  });
  assert.ok(versions.told('/0', {}, 1, () => 'y') > first);
});

test('a text is UTF-8 without NUL, and the same whatever its line breaks', () => {
  assert.equal(asText(Buffer.from('ä\n')), 'ä\n');
  assert.equal(asText(Buffer.from([0xef, 0xbb, 0xbf, 0x61])), 'a');
  assert.equal(asText(Buffer.from([0xff, 0xfe])), undefined);
  assert.equal(asText(Buffer.from('a\0')), undefined);
  assert.ok(isSameText('a\r\nb\rc\n', 'a\nb\nc\n'));
  assert.ok(!isSameText('a\n', 'a'));
});
