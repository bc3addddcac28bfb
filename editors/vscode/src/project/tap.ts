// TAP, as node writes it: a line for each test, indented as deep as the suites it is in, then a few lines about it.

import { place, type Case, type Findings, type Outcome } from './findings';
import { counted } from './runners';

const MAX_DEPTH = 64;

/** Letters of a failed test's words. The rest is dropped. */
const MAX_WORDS = 4 << 10;

const KNOWN = new Set(
  'duration_ms type location failureType error code name expected actual operator stack severity'.split(' '),
);

export class Tap {
  /** The names of the tests and suites that are open, by depth. */
  private names: string[] = [];
  /** What the lines that follow are about. */
  private last: { readonly told: Case; isSuite: boolean } | undefined;
  /** Whether the lines are the rest of its message. */
  private isTelling = false;

  line(line: string, found: Findings): void {
    const text = line.trimStart();
    const depth = Math.min(Math.floor((line.length - text.length) / 4), MAX_DEPTH);
    const subtest = /^# Subtest: (.*)$/.exec(text)?.[1];
    const told = this.caseOf(text, depth);
    if (subtest !== undefined) {
      this.end(found);
      this.names = [...this.names.slice(0, depth), subtest];
    } else if (told !== undefined) {
      this.end(found);
      this.last = { told, isSuite: false };
    } else if (text.startsWith('# ') && depth === 0) {
      this.end(found);
      const sum = /^# (\S+) (\d+)$/.exec(text);
      if (sum !== null) found.addSummary(counted(sum[1] ?? '', Number(sum[2])));
    } else if (text === '...') {
      this.end(found);
    } else {
      this.about(text);
    }
  }

  /** Tells of the last test, once all about it is known. */
  end(found: Findings): void {
    this.isTelling = false;
    if (this.last !== undefined && !this.last.isSuite) {
      const { told } = this.last;
      found.case({ ...told, message: told.message?.trimEnd() });
    }
    this.last = undefined;
  }

  /** `not ok 2 - lies`, `ok 3 - later # SKIP not yet` */
  private caseOf(text: string, depth: number): Case | undefined {
    const found = /^(not )?ok \d+ - (.*?)(?: # (?:(?:SKIP|TODO)\s*(.*)|.*))?$/.exec(text);
    if (found === null) return undefined;
    const [, not, bare = '', why] = found;
    const outcome: Outcome = why !== undefined ? 'ignored' : not === undefined ? 'passed' : 'failed';
    const name = [...this.names.slice(0, depth), bare].join(' > ');
    return { name, outcome, message: why === '' ? undefined : why };
  }

  private about(text: string): void {
    if (this.last === undefined) return;
    const { told } = this.last;
    const [, key = '', written = ''] = /^(\w+):(.*)$/.exec(text) ?? [];
    if (!KNOWN.has(key)) {
      const message = told.message ?? '';
      if (this.isTelling && message.length + text.length < MAX_WORDS) told.message = `${message}${text}\n`;
      return;
    }
    const value = written.trim();
    const bare = value.replace(/^'+|'+$/g, '');
    this.isTelling = false;
    if (key === 'duration_ms') told.durationMs = Math.round(Number(value));
    if (key === 'type') this.last.isSuite = bare === 'suite';
    if (key === 'location') told.path = place(bare)?.path;
    if (key === 'error') {
      this.isTelling = /^[|>]/.test(value);
      told.message = this.isTelling ? '' : bare;
    }
  }
}
