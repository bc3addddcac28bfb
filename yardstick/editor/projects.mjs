// The three projects: what is in them, and where in them is what the checklist is about.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export const PROJECTS = {
  rust: {
    files: {
      'Cargo.toml': '[package]\nname = "birds"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n',
      '.gitignore': 'target\n',
      'src/lib.rs': 'mod nest;\n\npub fn song(times: usize) -> String {\n    "tweet".repeat(times)\n}\n\npub fn brood() -> u32 {\n    nest::eggs()\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn sings() {\n        assert_eq!(song(2), "tweettweet");\n    }\n\n    #[test]\n    fn breeds() {\n        assert_eq!(brood(), 3);\n    }\n}\n',
      'src/nest.rs': 'pub fn eggs() -> u32 {\n    3\n}\n',
    },
    main: 'src/lib.rs', other: 'src/nest.rs', declared: 'song', search: '*.rs', found: 2,
    edit: ['fn song', 'fn chirp'], saved: ['    3', '    4'],
    mistake: ['"tweet".repeat(times)', 'times'],
    completes: ['nest::eggs()', 'nest::', 'eggs'],
    definition: 'eggs()', defined: 'src/nest.rs', references: 1,
    messy: ['src/nest.rs', 'pub fn eggs()->u32{3}\n', 'pub fn eggs() -> u32 {\n    3\n}\n'],
    rename: ['src/nest.rs', 'eggs', 'chicks'], renamed: 2,
    fix: 'song',
    build: 'cargo', tests: 'cargo', passed: 2,
  },
  python: {
    files: {
      'pyproject.toml': '[project]\nname = "birds"\nversion = "0.1.0"\n',
      '.gitignore': '__pycache__\n.pytest_cache\n',
      'Makefile': 'all:\n\tpython -m compileall -q birds.py nest.py\n',
      'birds.py': 'from nest import eggs\n\n\ndef song(times: int) -> str:\n    return "tweet" * times\n\n\ndef brood() -> int:\n    return eggs()\n',
      'nest.py': 'def eggs() -> int:\n    return 3\n',
      'test_birds.py': 'from birds import brood, song\n\n\ndef test_sings():\n    assert song(2) == "tweettweet"\n\n\ndef test_breeds():\n    assert brood() == 3\n',
    },
    main: 'birds.py', other: 'nest.py', declared: 'song', search: '*.py', found: 3,
    edit: ['def song', 'def chirp'], saved: ['return 3', 'return 4'],
    mistake: ['return "tweet" * times', 'return times'],
    completes: ['return eggs()', 'return "".', 'upper'],
    definition: 'eggs()', defined: 'nest.py', references: 1,
    rename: ['nest.py', 'eggs', 'chicks'], renamed: 2,
    build: 'make', tests: 'pytest', passed: 2,
  },
  typescript: {
    files: {
      'package.json': '{"name": "birds", "private": true, "type": "module", "scripts": {"build": "tsc -p .", "test": "tsc -p . && node --test --test-reporter=tap test/birds.test.mjs"}}\n',
      'tsconfig.json': '{"compilerOptions": {"strict": true, "target": "es2022", "module": "nodenext", "outDir": "dist", "rootDir": "src", "types": []}, "include": ["src"]}\n',
      '.gitignore': 'dist\nnode_modules\n',
      'src/birds.ts': "import { eggs } from './nest.js';\n\nexport function song(times: number): string {\n  return 'tweet'.repeat(times);\n}\n\nexport function brood(): number {\n  return eggs();\n}\n",
      'src/nest.ts': 'export function eggs(): number {\n    return 3;\n}\n',
      'test/birds.test.mjs': "import assert from 'node:assert';\nimport test from 'node:test';\nimport { brood, song } from '../dist/birds.js';\n\ntest('sings', () => assert.equal(song(2), 'tweettweet'));\ntest('breeds', () => assert.equal(brood(), 3));\n",
    },
    main: 'src/birds.ts', other: 'src/nest.ts', declared: 'song', search: '*.ts', found: 2,
    edit: ['function song', 'function chirp'], saved: ['return 3', 'return 4'],
    mistake: ["'tweet'.repeat(times)", 'times'],
    completes: ['return eggs()', "return ''.", 'toUpperCase'],
    definition: 'eggs();', defined: 'src/nest.ts', references: 1,
    messy: ['src/nest.ts', 'export function eggs( ):number{return   3}\n', null],
    rename: ['src/nest.ts', 'eggs', 'chicks'], renamed: 2,
    fix: 'eggs();',
    build: 'npm', tests: 'npm', passed: 2,
  },
};

export function makeProject(root, project) {
  for (const [path, text] of Object.entries(project.files)) {
    mkdirSync(dirname(`${root}/${path}`), { recursive: true });
    writeFileSync(`${root}/${path}`, text);
  }
  const git = (...words) => execFileSync('git', words, { cwd: root, stdio: 'ignore' });
  git('init', '-q', '-b', 'main');
  git('config', 'user.name', 'A Tester');
  git('config', 'user.email', 'tester@example.invalid');
  git('add', '--all');
  git('commit', '-q', '-m', 'The beginning');
}

// Where something stands in a text: the line, and the UTF-16 units before it.
export function place(text, words, more = 0) {
  const at = text.indexOf(words);
  if (at < 0) throw new Error(`no ${JSON.stringify(words)} in ${JSON.stringify(text)}`);
  const before = text.slice(0, at + more).split('\n');
  return { line: before.length - 1, character: before.at(-1).length };
}
