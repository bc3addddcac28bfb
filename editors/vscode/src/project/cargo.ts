// Cargo: its messages are JSON, and those of the test harness are lines between them.

import {
  place,
  severityOf,
  type Case,
  type Counts,
  type Findings,
  type Outcome,
  type Place,
  type Reader,
} from './findings';

interface Message {
  message: string;
  level: string;
  code?: { code: string } | null;
  spans?: Span[];
  rendered?: string | null;
}

interface Span {
  file_name: string;
  line_start: number;
  line_end: number;
  column_start: number;
  column_end: number;
  is_primary: boolean;
  text?: { text: string }[];
}

/** Letters of a failed test's words. The rest is dropped. */
const MAX_WORDS = 8 << 10;

export class Cargo implements Reader {
  /** The failed test whose words are being read, and the words. */
  private telling: { name: string; words: string } | undefined;

  line(line: string, found: Findings): void {
    if (line.startsWith('{"reason":')) return message(line, found);
    // What a test printed stands between its name and the next, and may look like anything.
    const name = /^---- (.*) stdout ----$/.exec(line)?.[1];
    if (name !== undefined) {
      this.tell(found);
      this.telling = { name, words: '' };
    } else if (this.telling !== undefined) {
      if (line === 'failures:') this.tell(found);
      else if (this.telling.words.length + line.length < MAX_WORDS) this.telling.words += `${line}\n`;
    } else {
      report(line, found);
    }
  }

  end(found: Findings): void {
    this.tell(found);
  }

  private tell(found: Findings): void {
    if (this.telling === undefined) return;
    const { name, words } = this.telling;
    this.telling = undefined;
    const told = found.failedCase(name);
    if (told === undefined) return;
    const panicked = / panicked at (.*)/.exec(words)?.[1];
    told.path = panicked === undefined ? undefined : place(panicked)?.path;
    told.message = words.trim();
  }
}

function message(line: string, found: Findings): void {
  const { reason, message } = parsed(line);
  if (reason !== 'compiler-message' || message === undefined) return;
  const spans = message.spans ?? [];
  const span = spans.find((one) => one.is_primary) ?? spans[0];
  // What only counts the others is no finding.
  const isSum = message.message.startsWith('aborting due to') || message.message.endsWith(' emitted');
  if (span === undefined && (isSum || message.level === 'failure-note')) return;
  found.diagnostic({
    severity: severityOf(message.level),
    source: 'rustc',
    code: message.code?.code,
    // The short form leaves out what helps most; the rendered one has it, and the place a second time.
    message: message.rendered?.trimEnd() ?? message.message,
    ...(span === undefined ? {} : { path: span.file_name, start: startOf(span), end: endOf(span) }),
  });
}

function parsed(line: string): { reason?: string; message?: Message } {
  try {
    return JSON.parse(line) as { reason?: string; message?: Message };
  } catch {
    return {};
  }
}

function startOf(span: Span): Place {
  return [span.line_start - 1, character(span.text?.[0]?.text, span.column_start)];
}

function endOf(span: Span): Place {
  return [span.line_end - 1, character(span.text?.at(-1)?.text, span.column_end)];
}

/** A column, counted in letters from one, in UTF-16 units from zero. */
function character(text: string | undefined, column: number): number {
  if (text === undefined) return column - 1;
  const letters = [...text];
  const before = letters.slice(0, column - 1).join('');
  return before.length + Math.max(column - 1 - letters.length, 0);
}

function report(line: string, found: Findings): void {
  const running = /^running (\d+) tests?$/.exec(line)?.[1];
  if (running !== undefined) {
    found.expected += Number(running);
  } else if (line.startsWith('test result: ')) {
    const counts = summary(line);
    if (counts !== undefined) found.addSummary(counts);
  } else {
    const told = caseOf(line);
    if (told !== undefined) found.case(told);
  }
}

/** `test NAME ... ok` */
function caseOf(line: string): Case | undefined {
  const parts = /^test (.*) \.\.\. (ok|FAILED|ignored)(?:, (.*))?$/.exec(line);
  if (parts === null) return undefined;
  const [, name = '', verdict = '', reason] = parts;
  const outcome: Outcome = verdict === 'ok' ? 'passed' : verdict === 'FAILED' ? 'failed' : 'ignored';
  return { name: name.replace(/ - should panic$/, ''), outcome, message: reason };
}

/** `test result: FAILED. 1 passed; 1 failed; 0 ignored; …` */
function summary(line: string): Counts | undefined {
  const counts = /(\d+) passed; (\d+) failed; (\d+) ignored/.exec(line);
  if (counts === null) return undefined;
  return { passed: Number(counts[1]), failed: Number(counts[2]), ignored: Number(counts[3]) };
}
