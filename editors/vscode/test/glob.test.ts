import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Glob } from '../src/search/glob';

const matches = (pattern: string, path: string): boolean => {
  const glob = Glob.of(pattern);
  return typeof glob !== 'string' && glob.matches(path);
};

// The same table as crates/editor/src/disk/glob.rs has.
test('a pattern means what it means in a shell', () => {
  const table: [string, string, boolean][] = [
    ['*.rs', 'main.rs', true],
    ['*.rs', 'src/main.rs', true],
    ['*.rs', 'main.rst', false],
    ['src/*.rs', 'src/main.rs', true],
    ['./src/*.rs', 'src/main.rs', true],
    ['src/*.rs', 'src/a/main.rs', false],
    ['src/*.rs', 'lib/src/main.rs', false],
    ['**/*.rs', 'main.rs', true],
    ['**/*.rs', 'a/b/main.rs', true],
    ['src/**', 'src/a/b', true],
    ['src/**/b', 'src/b', true],
    ['src/**/b', 'src/a/c', false],
    ['**', 'a/b', true],
    ['a?c', 'abc', true],
    ['a?c', 'aßc', true],
    ['a?c', 'ac', false],
    ['[a-c]x', 'bx', true],
    ['[!a-c]x', 'bx', false],
    ['[]x]', ']', true],
    ['[a-]', '-', true],
    ['*.{ts,tsx}', 'a.tsx', true],
    ['{a,b{c,d}}.x', 'bd.x', true],
    ['{a,b{c,d}}.x', 'b.x', false],
    ['\\*', '*', true],
    ['\\*', 'a', false],
    ['*', '.hidden', true],
    ['a*b*c', 'a-b-b-c', true],
    ['a*b*c', 'a-b-b-', false],
    ['', 'a', false],
    ['A', 'a', false],
  ];
  for (const [pattern, path, expected] of table) assert.equal(matches(pattern, path), expected, `${pattern} ${path}`);
});

test('a pattern that is none is refused', () => {
  const many = '{a,b}'.repeat(7);
  for (const wrong of [
    '',
    '../*',
    'a/../b',
    '/etc/*',
    '{..,a}/b',
    '{/etc,a}',
    '[a',
    '{a',
    'a}',
    '\\',
    many,
    'a'.repeat(1025),
  ]) {
    assert.equal(typeof Glob.of(wrong), 'string', wrong);
  }
});

test('no pattern takes long', () => {
  assert.equal(matches('*a'.repeat(400), `${'a'.repeat(250)}`), false);
  assert.equal(matches('**/*a/'.repeat(100), 'a/'.repeat(1000)), false);
});
