// The projects that are worked on.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const crate = (dependency) => `[package]\nname = "birds"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n${dependency}\n`;
const python = '[project]\nname = "birds"\nversion = "0.1.0"\n';

// Sockets, processes and shared memory are what tests of real projects have.
const pytest = `import multiprocessing
import socket
import tempfile


def double(number):
    return number * 2


def test_a_server_on_the_loopback_answers():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        server.accept()[0].sendall(b"tweet")
        assert client.recv(5) == b"tweet"


def test_processes_share_the_work():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(double, [1, 2, 3]) == [2, 4, 6]


def test_a_temporary_file_is_written():
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"tweet")
`;

export const PROJECTS = {
  crate: {
    'Cargo.toml': crate('fnv = "=1.0.6"'),
    'src/lib.rs': 'use std::hash::Hasher;\n\npub fn hashed(text: &str) -> u64 {\n    let mut hasher = fnv::FnvHasher::default();\n    hasher.write(text.as_bytes());\n    hasher.finish()\n}\n\n#[test]\nfn hashes() {\n    assert_ne!(hashed("tweet"), hashed("chirp"));\n}\n',
  },
  packed: {
    'Cargo.toml': crate('hex = "=0.4.2"'),
    'src/lib.rs': 'pub fn written(bytes: &[u8]) -> String {\n    hex::encode(bytes)\n}\n\n#[test]\nfn writes() {\n    assert_eq!(written(b"ab"), "6162");\n}\n',
  },
  // Its dependency is one that the person does not have: see person.mjs.
  fetched: { 'src/lib.rs': '#[test]\nfn is_built() {}\n' },
  page: {
    'package.json': JSON.stringify({
      name: 'birds', private: true, type: 'module', scripts: { test: 'node --test --test-reporter=tap test/birds.test.mjs', browser: 'playwright test' },
      dependencies: { ms: '2.1.3' }, devDependencies: { '@playwright/test': '1.65.1' },
    }),
    'test/birds.test.mjs': "import assert from 'node:assert';\nimport test from 'node:test';\nimport ms from 'ms';\n\ntest('is a minute', () => assert.equal(ms('1m'), 60000));\n",
    'playwright.config.mjs': "export default {\n  testDir: 'browser', workers: 1, reporter: 'line', timeout: 60000,\n  use: { launchOptions: { executablePath: process.env.BROWSER_UNDER_TEST, args: ['--no-sandbox'] } },\n};\n",
    'browser/page.spec.mjs': "import { createServer } from 'node:http';\nimport { expect, test } from '@playwright/test';\n\ntest('a button on the loopback is pressed', async ({ page }) => {\n  const body = '<button onclick=\"this.textContent = 1 + 1\">sing</button>';\n  const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(body)).listen(0, '127.0.0.1');\n  await new Promise((done) => server.once('listening', done));\n  await page.goto(`http://127.0.0.1:${server.address().port}/`);\n  await page.getByRole('button').click();\n  await expect(page.getByRole('button')).toHaveText('2');\n  server.close();\n});\n",
  },
  inside: { 'pyproject.toml': python, 'test_birds.py': pytest },
  outside: { 'pyproject.toml': python, 'test_birds.py': pytest },
  go: {
    'go.mod': 'module example.org/birds\n\ngo 1.19\n',
    'birds.go': 'package birds\n\nimport "strings"\n\nfunc Song(times int) string {\n\treturn strings.Repeat("tweet", times)\n}\n',
    'birds_test.go': 'package birds\n\nimport "testing"\n\nfunc TestSong(t *testing.T) {\n\tif Song(2) != "tweettweet" {\n\t\tt.Fatal("it does not sing")\n\t}\n}\n',
  },
  module: {
    'go.mod': 'module example.org/tree\n\ngo 1.19\n\nrequire example.org/nest v1.0.0\n',
    'tree.go': 'package tree\n\nimport "example.org/nest"\n\nfunc Eggs() int {\n\treturn nest.Eggs()\n}\n',
    'tree_test.go': 'package tree\n\nimport "testing"\n\nfunc TestEggs(t *testing.T) {\n\tif Eggs() != 3 {\n\t\tt.Fatal("an egg is missing")\n\t}\n}\n',
  },
  cmake: {
    'CMakeLists.txt': 'cmake_minimum_required(VERSION 3.10)\nproject(birds CXX)\nadd_executable(birds birds.cpp)\nenable_testing()\nadd_test(NAME sings COMMAND birds)\n',
    'birds.cpp': '#include <iostream>\n#include <string>\n\nint main() {\n    std::cout << std::string("tweet") << std::endl;\n    return 0;\n}\n',
  },
};

// Each has a mistake, and what it is corrected to.
export const MISTAKEN = {
  'rust-analyzer': {
    language: 'rust', main: 'src/lib.rs', mistake: ['-> u32 {\n    hasher', '-> u64 {\n    hasher'],
    files: {
      'Cargo.toml': crate('fnv = "=1.0.6"'),
      'src/lib.rs': 'use std::hash::Hasher;\n\npub fn hashed(hasher: fnv::FnvHasher) -> u32 {\n    hasher.finish()\n}\n',
    },
  },
  pyright: {
    language: 'python', main: 'birds.py', mistake: ['return times', 'return "tweet" * times'],
    files: { 'pyproject.toml': python, 'birds.py': 'def song(times: int) -> str:\n    return times\n' },
  },
  TypeScript: {
    language: 'typescript', main: 'birds.ts', mistake: ['return times', "return 'tweet'.repeat(times)"],
    files: { 'tsconfig.json': '{"compilerOptions": {"strict": true, "types": []}}\n', 'birds.ts': 'export function song(times: number): string {\n  return times;\n}\n' },
  },
  gopls: {
    language: 'go', main: 'birds.go', mistake: ['return times', 'return strings.Repeat("tweet", times)'],
    files: { 'go.mod': 'module example.org/song\n\ngo 1.19\n', 'birds.go': 'package song\n\nimport "strings"\n\nvar _ = strings.ToUpper\n\nfunc Song(times int) string {\n\treturn times\n}\n' },
  },
  clangd: {
    language: 'cpp', main: 'birds.cpp', mistake: ['return times', 'return std::to_string(times)'],
    files: { 'compile_flags.txt': '-std=c++17\n', 'birds.cpp': '#include <string>\n\nstd::string song(int times) {\n    return times;\n}\n' },
  },
};

export function make(root, files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(`${root}/${path}`), { recursive: true });
    writeFileSync(`${root}/${path}`, text);
  }
}
