// What tools have said, word for word (the built-in runtime's own examples), and what is read from it.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { Findings, placedLine } from '../src/project/findings';
import { readerOf, toolNamed } from '../src/project/tool';

const SAID = '../../crates/editor/src/run/project/tests';
const BASE = { folder: '/nowhere', root: '/nowhere' };

function said(name: string): string {
  return readFileSync(join(SAID, name), 'utf8');
}

function read(tool: string, text: string): Findings {
  const [found, reader] = [new Findings(), readerOf(toolNamed(tool))];
  text
    .replace(/\n$/, '')
    .split('\n')
    .forEach((line) => reader.line(line, found));
  reader.end?.(found);
  return found;
}

/** The cases as `outcome name`. */
function cases(found: Findings): string[] {
  return found.toldTests(BASE).cases.map(({ outcome, name }) => `${outcome} ${name}`);
}

function caseOf(found: Findings, name: string) {
  const one = found.toldTests(BASE).cases.find((told) => told.name === name);
  assert.ok(one, name);
  return { ...one, path: one.path?.replace('/nowhere/', '') };
}

/** The diagnostics as `path:line:character severity code`. */
function diagnostics(found: Findings): string[] {
  return found.toldDiagnostics(BASE).map(({ path, range: { start }, severity, code }) => {
    return `${path?.replace('/nowhere/', '')}:${start.line}:${start.character} ${severity} ${code ?? '-'}`;
  });
}

test('cargo tells of tests', () => {
  const found = read('cargo', said('cargo-test.txt'));
  assert.deepEqual(cases(found), [
    'passed tests::adds',
    'passed tests::panics',
    'failed tests::lies',
    'ignored tests::sleeps',
    'passed src/lib.rs - add (line 3)',
  ]);
  assert.deepEqual([found.counts, found.expected], [{ passed: 3, failed: 1, ignored: 1 }, 5]);
  const lies = caseOf(found, 'tests::lies');
  assert.equal(lies.path, 'src/lib.rs');
  assert.match(lies.message ?? '', /left == right` failed: it does not/);
  assert.equal(caseOf(found, 'tests::sleeps').message, 'too slow');
  assert.deepEqual(diagnostics(found), ['src/lib.rs:6:8 warning unused_variables'], 'once, though compiled twice');
});

test('cargo tells of errors', () => {
  const found = read('cargo', said('cargo-build.txt'));
  assert.deepEqual(diagnostics(found), ['src/lib.rs:6:30 error E0308']);
  const [one] = found.toldDiagnostics(BASE);
  assert.deepEqual(one?.range.end, { line: 6, character: 31 });
  assert.match(one?.message ?? '', /expected `u32`, found `&str`/);
  assert.deepEqual([found.errors, found.warnings], [1, 0]);
});

test('a column is counted in UTF-16', () => {
  const span = { file_name: 'a.rs', line_start: 1, line_end: 1, column_start: 3, column_end: 9, is_primary: true };
  const message = { message: 'm', level: 'warning', code: null, spans: [{ ...span, text: [{ text: '😀😀x' }] }] };
  const found = read('cargo', JSON.stringify({ reason: 'compiler-message', message }));
  const range = { start: { line: 0, character: 4 }, end: { line: 0, character: 10 } };
  assert.deepEqual(found.toldDiagnostics(BASE)[0]?.range, range);
});

test('node tells in TAP and for people', () => {
  const tap = read('npm', said('node-tap.txt'));
  const names = ['passed adds', 'failed lies', 'ignored later'];
  assert.deepEqual(cases(tap), [...names, 'passed a suite > inner', 'failed a suite > inner bad']);
  assert.deepEqual(tap.counts, { passed: 2, failed: 2, ignored: 1 });
  const lies = caseOf(tap, 'lies');
  assert.deepEqual([lies.message, lies.path, lies.duration_ms], ['2 == 3', '/p/t/a.test.cjs', 2]);
  assert.equal(caseOf(tap, 'later').message, 'not yet');

  const spec = read('npm', said('node-spec.txt'));
  assert.deepEqual(cases(spec), [...names, 'passed inner', 'failed inner bad']);
  assert.deepEqual(spec.counts, { passed: 2, failed: 2, ignored: 1 });
  assert.match(caseOf(spec, 'lies').message ?? '', /^AssertionError/);
  assert.equal(caseOf(spec, 'lies').path, '/p/t/a.test.cjs');
});

test('vitest and jest tell of tests', () => {
  const vitest = read('npm', said('vitest.txt'));
  const failed = 'v/a.test.mjs > suite > lies';
  assert.deepEqual(cases(vitest), ['passed adds', `failed ${failed}`, 'ignored later']);
  assert.deepEqual(vitest.counts, { passed: 2, failed: 1, ignored: 1 });
  assert.equal(caseOf(vitest, failed).path, 'v/a.test.mjs');
  assert.match(caseOf(vitest, failed).message ?? '', /^AssertionError: expected 2 to be 3/);

  const jest = read('npm', said('jest.txt'));
  assert.deepEqual(cases(jest), ['passed adds', 'failed suite › lies', 'ignored later']);
  assert.deepEqual(jest.counts, { passed: 1, failed: 1, ignored: 1 });
  assert.match(caseOf(jest, 'suite › lies').message ?? '', /Expected: 3/);
});

test('typescript and eslint tell of errors', () => {
  const expected = ['a.ts:0:6 error TS2322', 'a.ts:1:39 error TS2322'];
  assert.deepEqual(diagnostics(read('npm', said('tsc.txt'))), expected);
  assert.deepEqual(diagnostics(read('npm', said('tsc-pretty.txt'))), expected);
  const eslint = read('npm', said('eslint.txt'));
  assert.deepEqual(diagnostics(eslint), ['/p/l.js:0:6 warning no-unused-vars', '/p/l.js:0:18 error no-undef']);
  assert.equal(eslint.toldDiagnostics(BASE)[1]?.message, "'missing' is not defined");
  assert.deepEqual(cases(eslint), [], 'its sum is no test');
});

test('pytest tells of tests', () => {
  const found = read('pytest', said('pytest.txt'));
  assert.deepEqual(cases(found), [
    'passed test_a.py::TestSums::test_adds',
    'passed test_a.py::test_each[1]',
    'ignored test_a.py:15',
    'failed test_a.py::test_broken',
    'failed test_a.py::TestSums::test_lies',
    'failed test_a.py::test_each[2]',
  ]);
  assert.deepEqual(found.counts, { passed: 2, failed: 3, ignored: 1 });
  const lies = caseOf(found, 'test_a.py::TestSums::test_lies');
  assert.match(lies.message ?? '', /E {3}AssertionError: it does not/);
  assert.equal(lies.path, 'test_a.py');
  assert.match(caseOf(found, 'test_a.py::test_broken').message ?? '', /no fixture/);

  const broken = read('pytest', said('pytest-syntax.txt'));
  assert.deepEqual([cases(broken), broken.counts], [['failed test_b.py'], { passed: 0, failed: 1, ignored: 0 }]);
  assert.match(caseOf(broken, 'test_b.py').message ?? '', /SyntaxError: invalid syntax/);

  const compiled = read('pytest', said('compileall.txt'));
  assert.deepEqual(diagnostics(compiled), ['test_b.py:0:0 error -']);
});

test('go tells of tests and errors', () => {
  const found = read('go', said('go-test.txt'));
  const passed = ['passed lab.TestSub/inner', 'passed lab.TestSub'];
  assert.deepEqual(cases(found), ['passed lab.TestAdds', 'failed lab.TestLies', 'ignored lab.TestLater', ...passed]);
  const lies = caseOf(found, 'lab.TestLies');
  assert.deepEqual([lies.message, lies.path], ['a_test.go:12: got 3', 'a_test.go']);
  for (const name of ['go-build.txt', 'go-test-broken.txt']) {
    assert.deepEqual(diagnostics(read('go', said(name))), ['a.go:3:24 error -']);
  }
  // As go 1.24 and later have it.
  const newer = { ImportPath: 'lab', Action: 'build-output', Output: './a.go:4:25: undefined: missing\n' };
  assert.deepEqual(diagnostics(read('go', JSON.stringify(newer))), ['a.go:3:24 error -']);
});

test('make tells of errors where they are', () => {
  const found = read('make', said('make.txt'));
  assert.deepEqual(diagnostics(found), ['a.c:1:6 warning -Wunused-variable', '/p/sub/b.c:1:9 error -']);
  const stopped = read('make', "make: *** No rule to make target 'nothing'.  Stop.");
  const message = "No rule to make target 'nothing'.  Stop.";
  assert.deepEqual([stopped.errors, stopped.toldDiagnostics(BASE)[0]?.message], [1, message]);
});

test('a line with a place is told from others', () => {
  assert.deepEqual(placedLine('src/a.c:3:5: error: x: y'), { path: 'src/a.c', start: [2, 4], rest: 'error: x: y' });
  assert.deepEqual(placedLine('a.go:3: note'), { path: 'a.go', start: [2, 0], rest: 'note' });
  const others = [
    '10:20:30: at night',
    'http://a.b:80: no',
    'a: b',
    '',
    ':',
    '::::',
    'error: a.c:1:1: x',
    'a.c:0:1: x',
  ];
  others.forEach((line) => assert.equal(placedLine(line), undefined, line));
});

test('what is found is bounded and counted whole', () => {
  const found = new Findings();
  for (let i = 0; i < 10_000; i += 1) {
    const message = `${i} ${'ä'.repeat(5000)}`;
    found.diagnostic({ message, source: 'x' });
    found.case({ name: `${i}`, outcome: i % 2 === 0 ? 'failed' : 'passed', message });
  }
  const [told, { cases }] = [found.toldDiagnostics(BASE), found.toldTests(BASE)];
  assert.deepEqual([told.length, cases.length, found.isComplete], [500, 1500, false]);
  assert.deepEqual([found.errors, found.counts], [10_000, { passed: 5000, failed: 5000, ignored: 0 }]);
  assert.ok(told.every(({ message }) => message.length < 4200));
});

test('no words break a reader', () => {
  const names = ['cargo-test', 'node-tap', 'node-spec', 'vitest', 'jest', 'pytest', 'go-test', 'make'];
  const odd =
    '---- \n---- stdout ----\ntest  ... \ntest result: . \n✓\n✓ \n(,): \n  : \n=\n==\n= =\n_ _\nmake\nmake: \n\x1b\n\x1b[';
  for (const tool of ['cargo', 'npm', 'pytest', 'go', 'make']) {
    for (const text of [odd, ...names.map((name) => said(`${name}.txt`))]) {
      // Each line cut anywhere.
      for (let length = 0; length < 40; length += 1) {
        read(
          tool,
          text
            .split('\n')
            .map((line) => line.slice(0, length))
            .join('\n'),
        );
      }
    }
  }
});

test('a path is looked for in the folders above and no further', () => {
  const folder = mkdtempSync(join(tmpdir(), 'prism-'));
  const root = join(folder, 'root');
  mkdirSync(join(root, 'member/src'), { recursive: true });
  writeFileSync(join(root, 'member/src/lib.rs'), '');
  writeFileSync(join(folder, 'outside.rs'), '');
  const found = new Findings();
  for (const path of ['member/src/lib.rs', './src/lib.rs', 'outside.rs'])
    found.diagnostic({ path, message: path, source: 'x' });
  const paths = found.toldDiagnostics({ folder: join(root, 'member'), root }).map(({ path }) => path);
  const lib = join(root, 'member/src/lib.rs');
  assert.deepEqual(paths, [lib, lib, join(root, 'member/outside.rs')]);
});
