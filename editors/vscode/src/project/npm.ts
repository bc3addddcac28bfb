// What npm's scripts run: compilers and linters (tsc, eslint, esbuild), and test runners in `runners.ts`.

import { place, severityOf, type Diagnostic, type Findings, type Reader, type Severity } from './findings';
import { Runners } from './runners';

export class Npm implements Reader {
  private readonly runners = new Runners();
  /** The file whose findings eslint lists. */
  private file: string | undefined;
  /** What esbuild says, until it says where. */
  private pending: { severity: Severity; message: string } | undefined;

  line(coloured: string, found: Findings): void {
    const line = plain(coloured);
    if (!this.runners.line(line, found)) this.finding(line, found);
  }

  end(found: Findings): void {
    this.runners.end(found);
  }

  private finding(line: string, found: Findings): void {
    const typed = typescript(line);
    if (typed !== undefined) return found.diagnostic(typed);
    const bundled = /^(?:✘ \[(ERROR)\]|▲ \[(WARNING)\]) (.*)$/.exec(line);
    if (bundled !== null) {
      this.pending = { severity: bundled[1] === undefined ? 'warning' : 'error', message: bundled[3] ?? '' };
      return;
    }
    const at = this.pending !== undefined && line.startsWith('    ') ? place(line.trim()) : undefined;
    if (at !== undefined && this.pending !== undefined) {
      found.diagnostic({ ...at, ...this.pending, source: 'esbuild' });
      this.pending = undefined;
    } else if (line.startsWith('/') && !line.includes(': ') && !line.endsWith(':')) {
      this.file = line.trimEnd();
    } else if (line.trim() === '') {
      this.file = undefined;
    } else if (this.file !== undefined) {
      const linted = eslint(this.file, line);
      if (linted !== undefined) found.diagnostic(linted);
    }
  }
}

/** Without the codes that colour it. */
function plain(line: string): string {
  return line.replace(/\x1b(?:\[[^@-~]*[@-~]?|.)?/g, '');
}

/** `src/a.ts(3,5): error TS2322: …`, or `src/a.ts:3:5 - error TS2322: …` */
function typescript(line: string): Diagnostic | undefined {
  const found = /^(.+?)(?:\((\d+),(\d+)\):|:(\d+):(\d+) -) (\w+) (TS\d+): (.*)$/.exec(line);
  if (found === null) return undefined;
  const [, path = '', row, column, otherRow, otherColumn, severity = '', code = '', message = ''] = found;
  const start = [Number(row ?? otherRow) - 1, Number(column ?? otherColumn) - 1] as const;
  return { path, start, severity: severityOf(severity), message, source: 'tsc', code };
}

/** `  3:5  error  'x' is not defined  no-undef` */
function eslint(file: string, line: string): Diagnostic | undefined {
  const found = /^ {2}\s*(\d+):(\d+) {2,}(error|warning) {2,}(.*)$/.exec(line);
  if (found === null) return undefined;
  const [, row, column, severity = '', rest = ''] = found;
  const words = rest
    .split(/ {2,}/)
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const code = words.length > 1 ? words.pop() : undefined;
  const start = [Math.max(Number(row) - 1, 0), Math.max(Number(column) - 1, 0)] as const;
  return { path: file, start, severity: severityOf(severity), message: words.join('  '), source: 'eslint', code };
}
