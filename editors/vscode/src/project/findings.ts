// What a build or a test run has found, as much as an answer should hold. The counts are always whole.

import { existsSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';

/** Where a tool's words are read, line by line. What it finds goes to `Findings`. */
export interface Reader {
  line(line: string, found: Findings): void;
  /** There are no more lines. */
  end?(found: Findings): void;
}

export type Severity = 'error' | 'warning' | 'information';
export type Outcome = 'passed' | 'failed' | 'ignored';
export type Counts = Record<Outcome, number>;

/** Zero-based: line, and character in UTF-16 units as far as the tool tells. */
export type Place = readonly [line: number, character: number];

export interface Diagnostic {
  /** As the tool writes it; nothing if it names none. */
  path?: string;
  start?: Place;
  end?: Place;
  severity?: Severity;
  message: string;
  source: string;
  code?: string | undefined;
}

export interface Case {
  name: string;
  outcome: Outcome;
  message?: string | undefined;
  path?: string | undefined;
  durationMs?: number | undefined;
}

export interface ToldDiagnostic {
  readonly path: string | null;
  readonly range: Record<'start' | 'end', { readonly line: number; readonly character: number }>;
  readonly severity: Severity;
  readonly message: string;
  readonly source: string;
  readonly code: string | null;
}

export interface ToldTests extends Counts {
  readonly cases: readonly {
    readonly name: string;
    readonly outcome: Outcome;
    readonly message?: string;
    readonly path?: string;
    readonly duration_ms?: number;
  }[];
}

/** Diagnostics of an answer. Further ones are only counted. */
const MAX_DIAGNOSTICS = 500;

/** Cases of an answer that did not fail, and that did. Further ones are only counted. */
const MAX_CASES = 1000;
const MAX_FAILED = 500;

/** Letters of one message. The rest is cut off. */
const MAX_MESSAGE = 4096;

export class Findings {
  private readonly diagnostics: Diagnostic[] = [];
  /** What was told already: a file that is compiled twice warns twice. */
  private readonly told = new Set<string>();
  private readonly cases: Case[] = [];
  private readonly counted: Counts = { passed: 0, failed: 0, ignored: 0 };
  /** What the tool itself counts, where it does: it knows of tests that it does not name. */
  summary: Counts | undefined;
  errors = 0;
  warnings = 0;
  isComplete = true;
  /** Tests that it says there will be. */
  expected = 0;

  diagnostic(diagnostic: Diagnostic): void {
    const found = { ...diagnostic, message: cut(diagnostic.message) };
    const key = JSON.stringify([found.path, found.start, found.message]);
    if (this.told.has(key)) return;
    if (this.told.size < 8 * MAX_DIAGNOSTICS) this.told.add(key);
    const severity = found.severity ?? 'error';
    if (severity === 'error') this.errors += 1;
    if (severity === 'warning') this.warnings += 1;
    if (this.diagnostics.length < MAX_DIAGNOSTICS) this.diagnostics.push(found);
    else this.isComplete = false;
  }

  case(told: Case): void {
    const found = {
      ...told,
      name: cut(told.name),
      message: told.message === undefined ? undefined : cut(told.message),
    };
    this.counted[found.outcome] += 1;
    const isFailed = found.outcome === 'failed';
    const kept = isFailed ? this.counted.failed : this.counted.passed + this.counted.ignored;
    if (kept <= (isFailed ? MAX_FAILED : MAX_CASES)) this.cases.push(found);
    else this.isComplete = false;
  }

  /** A case that was told of before, to say more about it. */
  failedCase(name: string): Case | undefined {
    return this.cases.filter((one) => one.outcome === 'failed' && one.name === name).at(-1);
  }

  /** Adds what a tool counts for one of its parts. */
  addSummary(counts: Partial<Counts>): void {
    this.summary ??= { passed: 0, failed: 0, ignored: 0 };
    this.summary.passed += counts.passed ?? 0;
    this.summary.failed += counts.failed ?? 0;
    this.summary.ignored += counts.ignored ?? 0;
  }

  get counts(): Counts {
    return this.summary ?? this.counted;
  }

  /** How many tests have ended. */
  get ended(): number {
    return this.counted.passed + this.counted.failed + this.counted.ignored;
  }

  toldDiagnostics(base: Base): ToldDiagnostic[] {
    return this.diagnostics.map(({ path, start = [0, 0], end, severity = 'error', message, source, code }) => ({
      path: path === undefined ? null : resolved(base, path),
      range: { start: position(start), end: position(end !== undefined && !isBefore(end, start) ? end : start) },
      severity,
      message,
      source,
      code: code ?? null,
    }));
  }

  toldTests(base: Base): ToldTests {
    const cases = this.cases.map(({ name, outcome, message, path, durationMs }) => ({
      name,
      outcome,
      ...(message === undefined ? {} : { message }),
      ...(path === undefined ? {} : { path: resolved(base, path) }),
      ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    }));
    return { ...this.counts, cases };
  }
}

/** Where a tool's relative paths begin: in the folder it runs in or, as with a workspace, in one above, up to the root. */
export interface Base {
  readonly folder: string;
  readonly root: string;
}

function resolved({ folder, root }: Base, path: string): string {
  for (let above = folder; above === root || above.startsWith(root + sep); above = dirname(above)) {
    const found = resolve(above, path);
    if (existsSync(found)) return found;
    if (above === dirname(above)) break;
  }
  return resolve(folder, path);
}

function position([line, character]: Place): { line: number; character: number } {
  return { line, character };
}

function isBefore([line, character]: Place, [otherLine, otherCharacter]: Place): boolean {
  return line < otherLine || (line === otherLine && character < otherCharacter);
}

/** What a tool calls a severity. */
export function severityOf(word: string): Severity {
  const bare = word.trim().toLowerCase();
  if (bare === 'warning' || bare === 'warn') return 'warning';
  return ['note', 'info', 'information', 'help', 'hint'].includes(bare) ? 'information' : 'error';
}

function cut(text: string): string {
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}…` : text;
}

/** Takes `path:line:column` apart, or `path:line`. Lines and columns are counted from one there, and here from zero. */
export function place(text: string): { path: string; start: Place } | undefined {
  const found = /^(.+?):(\d+)(?::(\d+))?:*$/.exec(text);
  const [, path = '', line = '', column = '1'] = found ?? [];
  if (found === null || Number(line) < 1 || Number(column) < 1) return undefined;
  return { path, start: [Number(line) - 1, Number(column) - 1] };
}

/** `path:line:column: rest`, as compilers write it; the path has no blank before its first colon. */
export function placedLine(line: string): { path: string; start: Place; rest: string } | undefined {
  const found = /^([^ :]+):(\d+)(?::(\d+))?: ?(.*)$/.exec(line);
  if (found === null) return undefined;
  const [, path = '', row = '', column = '1', rest = ''] = found;
  const isFile = (path.includes('/') || path.includes('.')) && Number(row) > 0 && Number(column) > 0;
  return isFile ? { path, start: [Number(row) - 1, Number(column) - 1], rest: rest.trimStart() } : undefined;
}
