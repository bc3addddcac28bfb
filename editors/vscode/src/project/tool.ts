// Which tool a project is made for, where it is, and what is run.

import { accessSync, constants, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { Refusal } from '../refusal';
import { Cargo } from './cargo';
import type { Reader } from './findings';
import { Go } from './go';
import { Make } from './make';
import { Npm } from './npm';
import { Pytest } from './pytest';

/** In the order they are taken if a folder is made for several: a Makefile mostly calls the others. */
const TOOLS = ['cargo', 'go', 'npm', 'pytest', 'make'] as const;
export type Tool = (typeof TOOLS)[number];

export type Goal = 'build' | 'test';

export interface Project {
  readonly tool: Tool;
  /** Where it is. */
  readonly folder: string;
  /** The granted folder that it is in, as far as that is known. */
  readonly root: string;
}

export interface Plan {
  readonly words: string[];
  readonly env: Record<string, string>;
}

const MARKS: Record<Tool, string> = {
  cargo: 'Cargo.toml',
  go: 'go.mod',
  npm: 'package.json with scripts',
  pytest: 'pyproject.toml, pytest.ini or tests/test_*.py',
  make: 'Makefile',
};

const MAKEFILES = ['GNUmakefile', 'makefile', 'Makefile'];

/** A file that says something about a project is shorter than this; a longer one is not read. */
const MAX_MANIFEST = 1 << 20;

export function toolNamed(name: string): Tool {
  const found = TOOLS.find((tool) => tool === name);
  if (found !== undefined) return found;
  throw new Refusal('bad_arguments', `\`tool\` is cargo, npm, pytest, go or make, not ${JSON.stringify(name)}`);
}

export function readerOf(tool: Tool): Reader {
  switch (tool) {
    case 'cargo':
      return new Cargo();
    case 'go':
      return new Go();
    case 'npm':
      return new Npm();
    case 'pytest':
      return new Pytest();
    case 'make':
      return new Make();
  }
}

/** Finds the project that the first of some folders belongs to: there or in the next, each above the one before it. */
export function findProject([start = '', ...above]: readonly string[], wanted: Tool | undefined): Project {
  const candidates = wanted === undefined ? TOOLS : [wanted];
  const root = above.at(-1) ?? start;
  for (const folder of [start, ...above]) {
    const tool = candidates.find((one) => isFor(one, folder));
    if (tool !== undefined) return { tool, folder, root };
  }
  // Tests by themselves may belong to a project above; only if there is none they are one.
  if ((wanted ?? 'pytest') === 'pytest' && hasTests(start)) return { tool: 'pytest', folder: start, root };
  const marks = candidates.map((tool) => MARKS[tool]).join(', ');
  const looked = above.length > 0 ? `${start} or above it, up to ${root}` : start;
  throw new Refusal('not_found', `no project in ${looked}: no ${marks}; name its folder as \`cwd\``);
}

/** What is to be run, and what is added to the environment. */
export function planOf(project: Project, goal: Goal, part: string | undefined): Plan {
  // Colours are for people; and make's words are read, so they have to be the ones that are known.
  const env: Record<string, string> = { NO_COLOR: '1' };
  if (project.tool === 'make') env['LC_MESSAGES'] = 'C';
  return { words: goal === 'build' ? building(project, part) : testing(project, part), env };
}

function building({ tool, folder }: Project, part: string | undefined): string[] {
  switch (tool) {
    case 'cargo':
      return ['cargo', 'build', '--message-format=json', '--color=never', ...option('--package', part)];
    // What is built is looked at, not kept.
    case 'go':
      return ['go', 'build', '-o', '/dev/null', part ?? './...'];
    case 'npm':
      return ['npm', 'run', script(folder, part ?? 'build').name];
    case 'pytest': {
      const skipped = String.raw`(^|/)(\.venv|venv|\.tox|\.git|node_modules)/`;
      return [python(folder), '-m', 'compileall', '-q', '-x', skipped, part ?? '.'];
    }
    case 'make':
      return ['make', ...(part === undefined ? [] : [part])];
  }
}

function testing({ tool, folder }: Project, part: string | undefined): string[] {
  const named = part === undefined ? [] : [part];
  switch (tool) {
    case 'cargo':
      return ['cargo', 'test', '--no-fail-fast', '--message-format=json', '--color=never', ...named];
    case 'go':
      return ['go', 'test', '-json', ...option('-run', part), './...'];
    case 'npm':
      return ['npm', 'run', 'test', ...chosen(script(folder, 'test').line, part)];
    case 'pytest': {
      const isPlace = part !== undefined && (/::|\//.test(part) || part.endsWith('.py'));
      const which = isPlace ? named : option('-k', part);
      return [python(folder), '-m', 'pytest', '-rA', '--tb=short', '-q', '--color=no', ...which];
    }
    case 'make':
      return ['make', part ?? testRule(folder)];
  }
}

function option(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

/** How a test runner is told which tests are meant. One that is not known gets the bare name: mostly a file's. */
function chosen(line: string, part: string | undefined): string[] {
  if (part === undefined) return [];
  if (/vitest|jest/.test(line)) return ['--', '-t', part];
  return line.includes('mocha') ? ['--', '-g', part] : ['--', part];
}

function isFor(tool: Tool, folder: string): boolean {
  const has = (name: string) => isFile(join(folder, name));
  switch (tool) {
    case 'cargo':
      return has('Cargo.toml');
    case 'go':
      return has('go.mod');
    case 'npm':
      return Object.keys(scripts(folder)).length > 0;
    case 'pytest': {
      const isSetUp = ['pytest.ini', 'pyproject.toml', 'conftest.py', 'setup.py'].some(has);
      return isSetUp || (read(folder, 'setup.cfg') ?? '').includes('[tool:pytest]') || hasTests(join(folder, 'tests'));
    }
    case 'make':
      return MAKEFILES.some(has);
  }
}

function script(folder: string, name: string): { name: string; line: string } {
  const all = scripts(folder);
  const line = all[name];
  if (line !== undefined) return { name, line };
  const known = Object.keys(all).join(', ');
  throw new Refusal('not_found', `package.json has no script ${JSON.stringify(name)}; it has ${known}`);
}

function scripts(folder: string): Record<string, string> {
  try {
    const manifest = JSON.parse(read(folder, 'package.json') ?? '{}') as { scripts?: Record<string, unknown> };
    const all = Object.entries(manifest.scripts ?? {});
    return Object.fromEntries(all.filter((one): one is [string, string] => typeof one[1] === 'string'));
  } catch {
    return {};
  }
}

/** The project's own, if it has one. */
function python(folder: string): string {
  const own = ['.venv', 'venv'].map((name) => join(folder, name, 'bin/python'));
  return own.find((path) => isFile(path) && isProgram(path)) ?? 'python3';
}

function testRule(folder: string): string {
  const text = MAKEFILES.map((name) => read(folder, name)).find((found) => found !== undefined) ?? '';
  return !/^test\s*:/m.test(text) && /^check\s*:/m.test(text) ? 'check' : 'test';
}

function hasTests(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => /^test_.*\.py$|_test\.py$/.test(name));
  } catch {
    return false;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function read(folder: string, name: string): string | undefined {
  const path = join(folder, name);
  const about = statSync(path, { throwIfNoEntry: false });
  return about?.isFile() && about.size <= MAX_MANIFEST ? readFileSync(path, 'utf8') : undefined;
}
