// pytest, as `-rA --tb=short` has it tell; and `compileall`, which stands for a build.

import { place, type Counts, type Findings, type Outcome, type Reader } from './findings';

type Part = 'before' | 'failures' | 'passes' | 'summary';

/** Failed tests whose words are kept, and letters of each. */
const MAX_TOLD = 500;
const MAX_WORDS = 8 << 10;

const OUTCOMES: Record<string, Outcome> = {
  PASSED: 'passed',
  XPASS: 'passed',
  FAILED: 'failed',
  ERROR: 'failed',
  SKIPPED: 'ignored',
  XFAIL: 'ignored',
};

interface Said {
  readonly name: string;
  words: string;
}

export class Pytest implements Reader {
  private part: Part = 'before';
  /** The failed test whose words are being read. */
  private telling: Said | undefined;
  /** What was said of failed tests; their names come later. */
  private said: Said[] = [];
  /** The file and line of a syntax error, until the error itself is said. */
  private place: { path: string; line: number } | undefined;

  line(line: string, found: Findings): void {
    const heading = title(line, '=');
    if (heading !== undefined) return this.heading(heading, found);
    if (this.part === 'failures') return this.words(line);
    if (this.part === 'summary') {
      const counts = countsOf(line);
      if (counts === undefined) this.verdict(line, found);
      else found.summary = counts;
    }
    if (this.part === 'before') this.syntax(line, found);
  }

  private heading(heading: string, found: Findings): void {
    this.take();
    if (heading === 'FAILURES' || heading === 'ERRORS') this.part = 'failures';
    else if (heading === 'PASSES') this.part = 'passes';
    else if (heading.startsWith('short test summary')) this.part = 'summary';
    else {
      found.summary = countsOf(heading) ?? found.summary;
      this.part = 'before';
    }
  }

  private words(line: string): void {
    const name = title(line, '_');
    if (name !== undefined) {
      this.take();
      this.telling = { name: name.replace(/^ERROR at setup of /, ''), words: '' };
    } else if (this.telling !== undefined && this.telling.words.length + line.length < MAX_WORDS) {
      this.telling.words += `${line}\n`;
    }
  }

  private take(): void {
    if (this.telling !== undefined && this.said.length < MAX_TOLD) this.said.push(this.telling);
    this.telling = undefined;
  }

  /** `FAILED tests/test_a.py::test_b - AssertionError: …` */
  private verdict(line: string, found: Findings): void {
    const [, verdict = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    const outcome = OUTCOMES[verdict];
    if (outcome === undefined) return;
    if (verdict === 'SKIPPED') {
      // `[1] tests/test_a.py:3: why`: it says where and why, not which.
      const [, where = '', why = ''] = /^(?:\[\d+\] )?(.*?)(?:: (.*))?$/.exec(rest) ?? [];
      return found.case({ name: where, outcome, message: why, path: place(where)?.path });
    }
    const at = rest.indexOf(' - ');
    const name = at < 0 ? rest : rest.slice(0, at);
    const [file = '', ...inner] = name.split('::');
    // The heading has `TestClass.test_b[1]` for `test_a.py::TestClass::test_b[1]`.
    const heading = inner.join('.');
    const told = this.said.findIndex((one) => one.name === heading || one.name.endsWith(file));
    const words = told >= 0 && outcome === 'failed' ? this.said.splice(told, 1)[0]?.words.trim() : undefined;
    const reason = at < 0 ? undefined : rest.slice(at + 3);
    found.case({ name, outcome, message: words ?? reason, path: file });
  }

  /** `  File "./a.py", line 1`, and some lines later `SyntaxError: …` */
  private syntax(line: string, found: Findings): void {
    const at = /^\s*File "(.*)", line (\d+)/.exec(line);
    if (at !== null) {
      this.place = { path: at[1] ?? '', line: Number(at[2]) };
    } else if (this.place !== undefined && /^(Sorry: )?(SyntaxError|IndentationError|TabError): /.test(line)) {
      const start = [Math.max(this.place.line - 1, 0), 0] as const;
      found.diagnostic({ path: this.place.path, start, message: line, source: 'python' });
      this.place = undefined;
    }
  }
}

/** `==== title ====` */
function title(line: string, mark: string): string | undefined {
  return new RegExp(`^${mark}+ (.*) ${mark}+$`).exec(line)?.[1]?.trim();
}

/** `2 failed, 3 passed, 1 skipped in 0.12s` */
function countsOf(text: string): Counts | undefined {
  const at = text.lastIndexOf(' in ');
  if (at < 0) return undefined;
  const sum: Counts = { passed: 0, failed: 0, ignored: 0 };
  for (const part of text.slice(0, at).split(', ')) {
    const [, number = '', what = ''] = /^(\d+) (.*)$/.exec(part) ?? [];
    if (/^x?passed$/.test(what)) sum.passed += Number(number);
    else if (/^(failed|errors?)$/.test(what)) sum.failed += Number(number);
    else if (/^(skipped|xfailed)$/.test(what)) sum.ignored += Number(number);
    else if (!/^(deselected|warnings?|rerun)$/.test(what)) return undefined;
  }
  return sum;
}
