// What stands behind a terminal of the editor's in which something is shown that runs elsewhere. It only shows: nothing that is typed
// goes anywhere, and closing it ends nothing.

import * as vscode from 'vscode';
import type { Show, ShowEnded } from './protocol';

/** Letters that are kept until the editor opens the terminal, at least. Of twice as many the oldest go, and a line says so. */
const MAX_KEPT = 1 << 17;

const bold = (text: string): string => `\x1b[1m${text}\x1b[0m`;
const dim = (text: string): string => `\x1b[2m${text}\x1b[0m`;

/** The first screen, a cursor and no colours, whatever a program has left. (`?1049l` would move the cursor, too.) */
const RESTORED = '\x1b[?1047l\x1b[?25h\x1b[0m';

export class Screen implements vscode.Pseudoterminal, vscode.Disposable {
  private readonly writes = new vscode.EventEmitter<string>();
  private readonly sizes = new vscode.EventEmitter<vscode.TerminalDimensions | undefined>();
  private readonly names = new vscode.EventEmitter<string>();
  private readonly closes = new vscode.EventEmitter<void>();
  readonly onDidWrite = this.writes.event;
  readonly onDidOverrideDimensions = this.sizes.event;
  readonly onDidChangeName = this.names.event;
  /** The person has closed it. */
  readonly onClosedByPerson = this.closes.event;
  private isOpen = false;
  private kept = '';
  private size: vscode.TerminalDimensions | undefined;
  private name = '';
  private isAtLineStart = true;

  /** Has something new shown here, below what was shown before. */
  begin({ kind, title, command, path, rows, cols }: Show): void {
    this.rename(title);
    // A terminal is a screen of its own: what is drawn there has its place.
    this.resize(rows, cols);
    if (kind === 'command') this.line(`${bold(`$ ${command}`)}  ${dim(`in ${path}`)}`);
  }

  /** Shows it as it is. */
  write(text: string): void {
    if (text === '') return;
    this.isAtLineStart = text.endsWith('\n');
    if (this.isOpen) return this.writes.fire(text);
    this.kept += text;
    // From a whole line on.
    if (this.kept.length > 2 * MAX_KEPT) this.kept = dim('[…]') + this.kept.slice(-MAX_KEPT).replace(/^[^\n]*/, '\r');
  }

  /** Draws it as large as it is there; without a size as large as its panel is. */
  resize(rows?: number, columns?: number): void {
    this.size = rows !== undefined && columns !== undefined ? { rows, columns } : undefined;
    if (this.isOpen) this.sizes.fire(this.size);
  }

  /** Marks it as over, and how. */
  end(title: string, ended: Omit<ShowEnded, 'type' | 'id'>): void {
    this.line(`${RESTORED}${dim(`[${endingOf(ended)}]`)}`);
    this.rename(`${ended.exit_code === 0 ? '✓' : '✗'} ${title}`);
  }

  open(): void {
    this.isOpen = true;
    if (this.size) this.sizes.fire(this.size);
    if (this.name !== '') this.names.fire(this.name);
    this.writes.fire(this.kept);
    this.kept = '';
  }

  close(): void {
    this.isOpen = false;
    this.closes.fire();
  }

  dispose(): void {
    vscode.Disposable.from(this.writes, this.sizes, this.names, this.closes).dispose();
  }

  /** Writes a line of ours, on a line of its own. */
  private line(text: string): void {
    this.write(`${this.isAtLineStart ? '' : '\r\n'}${text}\r\n`);
  }

  private rename(name: string): void {
    this.name = name;
    if (this.isOpen) this.names.fire(name);
  }
}

function endingOf({ exit_code: code, signal, note }: Omit<ShowEnded, 'type' | 'id'>): string {
  const how = code !== undefined ? `exit code ${code}` : signal !== undefined ? `signal ${signal}` : undefined;
  return ['ended', how, note].filter((part) => part !== undefined).join(', ');
}
