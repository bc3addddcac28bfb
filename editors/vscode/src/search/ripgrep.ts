// The search through files: by ripgrep, which every VS Code has in it for its own search, and which the built-in
// editor's engine is made of as well. So an expression means the same in all editors, takes time in proportion to the
// text, and what ignore files say is left out. JavaScript's own expressions would do neither: one that backtracks holds
// up all extensions of the window.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type * as vscode from 'vscode';
import { Refusal } from '../refusal';

/** What is looked for. */
export interface Pattern {
  readonly text: string;
  /** Whether it is words, not an expression. */
  readonly isFixed: boolean;
  readonly ignoresCase: boolean;
  readonly isWord: boolean;
  readonly isMultiline: boolean;
}

/** What is wanted of what is usually left out. */
export interface Also {
  readonly hidden: boolean;
  readonly ignored: boolean;
}

/** Lines of a file with what was found in them, in bytes. */
export interface Found {
  readonly path: string;
  readonly lines: Buffer;
  /** From zero. */
  readonly line: number;
  readonly offset: number;
  readonly places: readonly (readonly [number, number])[];
}

/** How a search ended. */
export interface Ended {
  /** Whether everything was looked at. */
  readonly isComplete: boolean;
}

/** The longest expression. */
const MAX_LENGTH = 8 * 1024;

/** How long one search may take. What was found by then is told as not complete. */
const WITHIN_MS = 20_000;

/** The largest file that is looked into: one line of it may be all of it, and comes as one message. */
const MAX_FILE = '64M';

/** Letters of a complaint that are told. */
const MAX_COMPLAINT = 1_000;

export class Ripgrep {
  private constructor(private readonly program: string) {}

  /** Finds it in the editor's own folder. Not on PATH: that would be another program by the same name. */
  static in(appRoot: string): Ripgrep | undefined {
    const name = process.platform === 'win32' ? 'rg.exe' : 'rg';
    const machine = `${process.platform}-${process.arch}`;
    const homes = [
      join('@vscode', 'ripgrep', 'bin'),
      join('@vscode', 'ripgrep-universal', 'bin', machine),
      join('@vscode', `ripgrep-${machine}`, 'bin'),
    ];
    const folders = ['node_modules', 'node_modules.asar.unpacked'];
    const programs = folders.flatMap((folder) => homes.map((home) => join(appRoot, folder, home, name)));
    const program = programs.find((path) => existsSync(path));
    return program === undefined ? undefined : new Ripgrep(program);
  }

  /** Searches all files beneath a folder, by path. `visit` returns whether it wants more. */
  async folder(
    pattern: Pattern,
    folder: string,
    scope: { readonly also: Also; readonly isRoot: boolean },
    stop: vscode.CancellationToken,
    visit: (found: Found) => boolean,
  ): Promise<Ended> {
    const args = ['--json', '--sort=path', ...wordsOf(pattern), ...rulesOf(scope), '--', '.'];
    return this.search(args, { cwd: folder }, stop, visit);
  }

  /** Searches a text, and gives the places as editors count them: by UTF-16 units. */
  async text(
    pattern: Pattern,
    text: string,
    limit: number,
    stop: vscode.CancellationToken,
  ): Promise<[number, number][]> {
    const bytes = Buffer.from(text, 'utf8');
    const places: [number, number][] = [];
    let [byte, unit] = [0, 0];
    const unitAt = (to: number): number => {
      unit += bytes.toString('utf8', byte, to).length;
      byte = to;
      return unit;
    };
    await this.search(['--json', '--text', ...wordsOf(pattern), '-'], { input: bytes }, stop, (found) => {
      for (const [start, end] of found.places) {
        places.push([unitAt(found.offset + start), unitAt(found.offset + end)]);
        if (places.length > limit) return false;
      }
      return true;
    });
    return places;
  }

  /** Returns what each place that `text` finds is replaced by, with `$1` and `${name}` for parts of it. */
  async replaced(pattern: Pattern, text: string, newText: string, stop: vscode.CancellationToken): Promise<string[]> {
    // What is put in may hold anything but this.
    const mark = `\u0001prism-${Math.random().toString(36).slice(2)}\u0001`;
    const args = [
      '--text',
      '--only-matching',
      '--no-filename',
      '--no-line-number',
      '--color=never',
      '--no-heading',
      `--replace=${mark}${newText}${mark}`,
      ...wordsOf(pattern),
      '-',
    ];
    let output = '';
    await this.run(args, { input: Buffer.from(text, 'utf8') }, stop, (piece) => {
      output += piece;
      return output.length <= MAX_REPLACED;
    });
    if (output.length > MAX_REPLACED) {
      throw new Refusal(
        'too_large',
        'it would put in more than 8 MiB; `path` and `glob` narrow it down. Nothing was changed',
      );
    }
    return output.split(mark).filter((_, i) => i % 2 === 1);
  }

  /** Lists the files beneath a folder that a search looks at. `visit` returns whether it wants more. */
  async files(
    folder: string,
    scope: { readonly also: Also; readonly isRoot: boolean },
    stop: vscode.CancellationToken,
    visit: (path: string) => boolean,
  ): Promise<void> {
    await this.run(['--files', '--no-config', ...rulesOf(scope), '--', '.'], { cwd: folder }, stop, undefined, (line) =>
      visit(line.replace(/^\.\//, '')),
    );
  }

  private async search(
    args: string[],
    from: Source,
    stop: vscode.CancellationToken,
    visit: (found: Found) => boolean,
  ): Promise<Ended> {
    let hasEnded = false;
    const run = await this.run(args, from, stop, undefined, (line) => {
      const message = JSON.parse(line) as Message;
      if (message.type === 'summary') hasEnded = true;
      return message.type === 'match' ? visit(foundIn(message.data)) : true;
    });
    if (run.code === 2 && !hasEnded) {
      const why = run.complaint.trim().replace(/^rg: /, '');
      const hint = why.includes('not allowed in a regex') ? '; `multiline` lets a match go over several lines' : '';
      throw new Refusal('bad_arguments', `\`pattern\` is no expression that can be looked for: ${why}${hint}`);
    }
    return { isComplete: hasEnded && run.code !== 2 };
  }

  /** Runs it. It is ended when nobody waits for it any more, when it has taken too long, or when enough was seen. */
  private run(
    args: string[],
    from: Source,
    stop: vscode.CancellationToken,
    piece?: (piece: string) => boolean,
    line?: (line: string) => boolean,
  ): Promise<{ code: number | null; complaint: string }> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.program, args, { cwd: from.cwd, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
      const end = (): void => void child.kill('SIGKILL');
      const timer = setTimeout(end, WITHIN_MS);
      const stopped = stop.onCancellationRequested(end);
      let [complaint, wantsMore] = ['', true];
      const see = (wants: () => boolean): void => {
        if (!wantsMore) return;
        try {
          wantsMore = wants();
        } catch (error) {
          wantsMore = false;
          reject(error instanceof Error ? error : new Error(String(error)));
        }
        if (!wantsMore) end();
      };
      child.stdout.setEncoding('utf8');
      child.stderr.setEncoding('utf8');
      child.stderr.on('data', (text: string) => {
        if (complaint.length < MAX_COMPLAINT) complaint += text.slice(0, MAX_COMPLAINT - complaint.length);
      });
      if (piece) child.stdout.on('data', (text: string) => see(() => piece(text)));
      const lines = line && createInterface({ input: child.stdout, crlfDelay: Infinity });
      const isRead = lines ? new Promise<void>((done) => lines.once('close', done)) : Promise.resolve();
      lines?.on('line', (text) => see(() => line?.(text) ?? true));
      // It may be done before it has read everything.
      child.stdin.on('error', () => undefined);
      child.stdin.end(from.input ?? '');
      const settled = (): void => {
        clearTimeout(timer);
        stopped.dispose();
      };
      child.once('error', (error) => {
        settled();
        reject(new Refusal('failed', `the editor's search cannot be started: ${error.message}`));
      });
      child.once('close', (code) => {
        settled();
        void isRead.then(() => resolve({ code, complaint }));
      });
    });
  }
}

/** What one action puts in at most, in letters. */
const MAX_REPLACED = 8 << 20;

/** Where it reads, or what. */
interface Source {
  readonly cwd?: string;
  readonly input?: Buffer;
}

/** Says in words why an expression cannot be looked for, as far as that shows without trying. */
export function faultOf(expression: string): string | undefined {
  if (expression === '') return 'is empty';
  if (Buffer.byteLength(expression) > MAX_LENGTH) return `must have at most ${MAX_LENGTH} bytes`;
  return undefined;
}

function wordsOf(pattern: Pattern): string[] {
  const words = ['--no-config', '--crlf', pattern.ignoresCase ? '--ignore-case' : '--case-sensitive'];
  if (pattern.isFixed) words.push('--fixed-strings');
  if (pattern.isWord) words.push('--word-regexp');
  if (pattern.isMultiline) words.push('--multiline');
  words.push(`--regexp=${pattern.text}`);
  return words;
}

/** What is left out: as the built-in editor has it, by the ignore files from the open folder down and none above it. */
function rulesOf({ also, isRoot }: { readonly also: Also; readonly isRoot: boolean }): string[] {
  const rules = ['--no-require-git', '--no-ignore-global', '--no-messages', `--max-filesize=${MAX_FILE}`];
  if (isRoot) rules.push('--no-ignore-parent');
  if (also.hidden) rules.push('--hidden');
  if (also.ignored) rules.push('--no-ignore');
  // Git's own: who looks for hidden files does not look for these.
  if (also.hidden && !also.ignored) rules.push('--glob=!.git');
  return rules;
}

interface Message {
  readonly type: string;
  readonly data: Matched;
}

type Text = { readonly text: string } | { readonly bytes: string };

interface Matched {
  readonly path?: Text;
  readonly lines: Text;
  readonly line_number?: number;
  readonly absolute_offset: number;
  readonly submatches: readonly { readonly start: number; readonly end: number }[];
}

function foundIn(data: Matched): Found {
  return {
    path: data.path ? bytesOf(data.path).toString('utf8').replace(/^\.\//, '') : '',
    lines: bytesOf(data.lines),
    line: (data.line_number ?? 1) - 1,
    offset: data.absolute_offset,
    places: data.submatches.map(({ start, end }) => [start, end] as const),
  };
}

function bytesOf(text: Text): Buffer {
  return 'text' in text ? Buffer.from(text.text, 'utf8') : Buffer.from(text.bytes, 'base64');
}
