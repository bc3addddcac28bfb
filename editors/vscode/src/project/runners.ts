// Test runners of JavaScript: what speaks TAP (`tap.ts`), and those that write for people: node's own, vitest, jest, mocha. These
// put a mark before each test and a sum at the end.

import { place, type Counts, type Findings, type Outcome } from './findings';
import { Tap } from './tap';

interface Telling {
  readonly name: string;
  words: string;
  /** A section with blank lines in it, not just the lines below a mark. */
  readonly isSection: boolean;
}

/** Suites in suites. Deeper ones are not followed. */
const MAX_DEPTH = 64;

/** Letters of a failed test's words. The rest is dropped. */
const MAX_WORDS = 4 << 10;

export class Runners {
  private tap: Tap | undefined;
  /** Suites that node has begun and not ended: their end looks like a test. */
  private readonly suites: string[] = [];
  /** What is being said of a failed test. */
  private telling: Telling | undefined;
  /** Node tells of the failed ones a second time. */
  private isRepeating = false;

  /** Tells whether the line was one of theirs. */
  line(line: string, found: Findings): boolean {
    if (line.startsWith('TAP version ')) this.tap ??= new Tap();
    if (this.tap !== undefined) {
      this.tap.line(line, found);
      return true;
    }
    const section = sectionOf(line);
    if (section !== undefined) {
      this.tell(found);
      this.telling = { name: section, words: '', isSection: true };
      return true;
    }
    if (summed(line, found)) {
      this.tell(found);
      return true;
    }
    const mark = markOf(line);
    if (mark !== undefined) {
      this.tell(found);
      this.mark(mark, found);
      return true;
    }
    const suite = /^\s*▶ (.*)$/.exec(line)?.[1];
    if (suite !== undefined) {
      if (this.suites.length < MAX_DEPTH) this.suites.push(suite.trim());
      return true;
    }
    return this.word(line, found);
  }

  end(found: Findings): void {
    this.tell(found);
    this.tap?.end(found);
  }

  private word(line: string, found: Findings): boolean {
    if (this.telling === undefined) return false;
    const isOver = this.telling.isSection ? line.startsWith('⎯') : line.trim() === '';
    if (isOver) this.tell(found);
    else if (this.telling.words.length + line.length < MAX_WORDS) this.telling.words += `${line}\n`;
    return true;
  }

  private mark({ outcome, name, durationMs }: Mark, found: Findings): void {
    if (name === 'failing tests:') this.isRepeating = true;
    if (this.isRepeating) return;
    if (this.suites.at(-1) === name) {
      this.suites.pop();
      return;
    }
    if (outcome === 'failed') this.telling = { name, words: '', isSection: false };
    found.case({ name, outcome, durationMs });
  }

  /** Gives a failed test its words. */
  private tell(found: Findings): void {
    if (this.telling === undefined) return;
    const { name, words, isSection } = this.telling;
    this.telling = undefined;
    // The mark had the last part only.
    const told = found.failedCase(name.split(/ > | › /).at(-1) ?? name);
    if (told === undefined || words.trim() === '') return;
    told.path = words
      .split('\n')
      .map(placed)
      .find((path) => path !== undefined);
    if (isSection) told.name = name;
    told.message = words.trim();
  }
}

function summed(line: string, found: Findings): boolean {
  const bare = line.trimStart();
  // vitest and jest: all in one line.
  const listed = /^Tests(?:: |  )(.*)$/.exec(bare)?.[1];
  if (listed !== undefined) {
    found.summary = { passed: 0, failed: 0, ignored: 0 };
    for (const part of listed.split(/[|,]/)) {
      const [number = '', what = ''] = part.trim().split(/\s+/);
      if (/^\d+$/.test(number)) found.addSummary(counted(what, Number(number)));
    }
    return true;
  }
  // node: one line for each.
  if (bare.startsWith('ℹ ')) {
    const node = /^ℹ (\S+) (\d+)$/.exec(bare);
    if (node !== null) found.addSummary(counted(node[1] ?? '', Number(node[2])));
    return node !== null || /^ℹ \S+ /.test(bare);
  }
  // mocha: one line for each, the other way round.
  const mocha = /^(\d+) (passing|failing|pending)\b/.exec(bare);
  if (mocha !== null) found.addSummary(counted(mocha[2] ?? '', Number(mocha[1])));
  return mocha !== null;
}

export function counted(what: string, number: number): Partial<Counts> {
  if (['pass', 'passed', 'passing'].includes(what)) return { passed: number };
  if (['fail', 'failed', 'failing', 'cancelled'].includes(what)) return { failed: number };
  return ['skipped', 'todo', 'pending'].includes(what) ? { ignored: number } : {};
}

interface Mark {
  readonly outcome: Outcome;
  readonly name: string;
  readonly durationMs: number | undefined;
}

/** `✓ adds (2 ms)` */
function markOf(line: string): Mark | undefined {
  const found = /^\s*(?:([✔✓])|([✖✕×])|[﹣○↓]) (.*)$/u.exec(line);
  if (found === null) return undefined;
  const outcome: Outcome = found[1] !== undefined ? 'passed' : found[2] !== undefined ? 'failed' : 'ignored';
  const rest = (found[3] ?? '')
    .trim()
    .replace(/^skipped /, '')
    .replace(/ # .*$/, '');
  const { name, durationMs } = timed(rest);
  // A file of vitest's, or a sum of eslint's.
  const isSum = / tests?\)$| tests \| | problems? \(/.test(name);
  return isSum || name === '' ? undefined : { outcome, name, durationMs };
}

/** `adds (2 ms)`, `adds (1.27ms)`, `adds 5ms` */
function timed(text: string): { name: string; durationMs: number | undefined } {
  const found = /^(.*?)[ (]+(\d+(?:\.\d+)?)\s*ms\)?$/.exec(text);
  if (found === null) return { name: text, durationMs: undefined };
  return { name: found[1] ?? '', durationMs: Math.round(Number(found[2])) };
}

/** ` FAIL  a.test.js > suite > lies`, `  ● suite › lies` */
function sectionOf(line: string): string | undefined {
  return /^\s*(?:● (.*)|FAIL  (.* > .*))$/
    .exec(line)
    ?.slice(1)
    .find((name) => name !== undefined)
    ?.trim();
}

/** ` ❯ v/a.test.mjs:3:60`, `at Object.toBe (a.test.js:2:60)`, `at f (/p/a.test.cjs:3:27)` */
function placed(line: string): string | undefined {
  const at = /^\s*(?:❯|at) (.*)$/.exec(line)?.[1];
  const bare = at?.replace(/^.*\(/, '').replace(/\)+$/, '').split(/\s+/).at(-1);
  const path = bare === undefined ? undefined : place(bare)?.path;
  return path === undefined || path.startsWith('node:') || path.includes('node_modules/') ? undefined : path;
}
