// Where the person sees a child of ours: what stands behind a terminal of the editor's. It shows what is printed, passes on what
// is typed, and tells when it is closed.

import * as vscode from 'vscode';

import type { Size } from './program';

export interface Hands {
  /** Whether lines end as in a file: what is printed at a terminal has its carriage returns, and is shown as it is. */
  readonly isPlain: boolean;
  /** All that was printed until now, as far as it is kept. */
  printed(): Buffer;
  typed?(input: string): void;
  /** The person does not want it any more. */
  closed(): void;
}

/** Bytes that the window is behind. Of more only the end is shown, with a mark; all that is kept can be read. */
const MAX_DUE = 1 << 20;
const LEFT_OUT = Buffer.from('\r\n[…]\r\n');

/** How long is waited for more to show, in milliseconds. */
const SHOWING = 15;

export class Screen implements vscode.Pseudoterminal, vscode.Disposable {
  private readonly writes = new vscode.EventEmitter<string>();
  private readonly sizes = new vscode.EventEmitter<vscode.TerminalDimensions | undefined>();
  private readonly closes = new vscode.EventEmitter<number>();
  readonly onDidWrite = this.writes.event;
  readonly onDidOverrideDimensions = this.sizes.event;
  readonly onDidClose = this.closes.event;
  private isOpen = false;
  /** What is not shown yet. */
  private due: Buffer[] = [];
  private dueBytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private exitCode: number | undefined;
  /** Letters that come in two pieces are shown when they are whole. */
  private letters = new TextDecoder('utf-8');

  /** With a size it is drawn as large, however large its panel is. */
  constructor(
    private readonly hands: Hands,
    private size?: Size,
  ) {}

  open(): void {
    // What was written before that nobody has seen.
    this.isOpen = true;
    this.letters = new TextDecoder('utf-8');
    if (this.size !== undefined) this.resize(this.size);
    this.print(this.hands.printed());
    if (this.exitCode !== undefined) this.end(this.exitCode);
  }

  close(): void {
    this.isOpen = false;
    this.hands.closed();
  }

  handleInput(input: string): void {
    try {
      this.hands.typed?.(input);
    } catch {
      // The program does not read it; the person sees that.
    }
  }

  /** Shows it soon: what comes together is shown together, and of very much only the end. */
  print(bytes: Buffer): void {
    if (!this.isOpen) return;
    this.due.push(bytes);
    this.dueBytes += bytes.length;
    if (this.dueBytes > MAX_DUE) this.cut();
    this.timer ??= setTimeout(() => this.flush(), SHOWING);
  }

  private cut(): void {
    const end = Buffer.concat(this.due).subarray(-MAX_DUE / 2);
    this.due = [LEFT_OUT, end];
    this.dueBytes = LEFT_OUT.length + end.length;
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const printed = this.letters.decode(Buffer.concat(this.due), { stream: true });
    const text = this.hands.isPlain ? printed.replace(/\r?\n/g, '\r\n') : printed;
    this.due = [];
    this.dueBytes = 0;
    if (text !== '') this.writes.fire(text);
  }

  resize(size: Size): void {
    this.size = size;
    this.sizes.fire({ columns: size.cols, rows: size.rows });
  }

  /** Says that nothing more comes, and lets the editor close it. */
  end(exitCode: number): void {
    this.exitCode = exitCode;
    if (!this.isOpen) return;
    this.flush();
    this.closes.fire(exitCode);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.writes.dispose();
    this.sizes.dispose();
    this.closes.dispose();
  }
}
