// The terminals that agents have opened here. They are a session's own: for every other they are not there.

import * as vscode from 'vscode';

import { Refusal } from '../refusal';
import { History, type Piece } from './history';
import type { Ears, Program, Size, Status } from './program';

/** Terminals of one session, and of all. Beyond it one that has ended is forgotten; if none has, a new one is refused. */
const MAX_OF_SESSION = 8;
const MAX_TERMINALS = 32;

export interface Told {
  readonly terminal: Terminal;
  readonly what:
    | { readonly kind: 'started' }
    | { readonly kind: 'printed' }
    | { readonly kind: 'executed'; readonly command: string; readonly exitCode: number | null }
    | { readonly kind: 'ended' };
}

export class Terminals {
  private readonly all = new Map<string, Terminal>();
  private opened = 0;
  private readonly told = new vscode.EventEmitter<Told>();
  /** What happens in any of them. */
  readonly onTold = this.told.event;

  /** Opens one; `start` is given where its program tells what happens. */
  async open(about: About, start: (terminal: Terminal) => Promise<Program>): Promise<Terminal> {
    this.admit(about.session);
    this.opened += 1;
    const terminal = new Terminal(`${this.opened}`, about, (what) => this.told.fire({ terminal, what }));
    // From here on it counts, so that two at once cannot both be the last.
    this.all.set(terminal.name, terminal);
    try {
      await terminal.start(start);
    } catch (error) {
      this.forget(terminal);
      throw error;
    }
    this.told.fire({ terminal, what: { kind: 'started' } });
    return terminal;
  }

  named(name: string, session: string): Terminal {
    const found = this.all.get(name);
    if (found?.about.session === session) return found;
    const shown = JSON.stringify(name);
    throw new Refusal('not_found', `there is no terminal ${shown}; get_output without one lists them`);
  }

  of(session: string): Terminal[] {
    return [...this.all.values()].filter((terminal) => terminal.about.session === session);
  }

  forget(terminal: Terminal): void {
    this.all.delete(terminal.name);
    terminal.leave();
  }

  /** Ends all: nobody is there any more who could. */
  close(): void {
    [...this.all.values()].forEach((terminal) => this.forget(terminal));
  }

  private admit(session: string): void {
    for (;;) {
      const ownAreFull = this.of(session).length >= MAX_OF_SESSION;
      if (!ownAreFull && this.all.size < MAX_TERMINALS) return;
      const candidates = ownAreFull ? this.of(session) : [...this.all.values()];
      const ended = candidates.find((terminal) => terminal.status !== undefined);
      if (ended === undefined) {
        const most = ownAreFull ? MAX_OF_SESSION : MAX_TERMINALS;
        throw new Refusal('rate_limited', `${most} terminals are open already; close one with send_input`);
      }
      this.forget(ended);
    }
  }
}

export interface About {
  readonly session: string;
  /** What runs in it, as it would be typed. */
  readonly line: string;
  readonly cwd: string;
}

export class Terminal {
  readonly history = new History();
  /** How it has ended; `undefined` while it runs. */
  status: Status | undefined;
  private program: Program | undefined;
  private readonly waiting = new Set<() => void>();
  private isLeft = false;
  /** What is to be done when nobody has it any more. */
  private readonly leaving: (() => void)[] = [];

  constructor(
    readonly name: string,
    readonly about: About,
    private readonly tell: (what: Told['what']) => void,
  ) {}

  async start(start: (terminal: Terminal) => Promise<Program>): Promise<void> {
    this.program = await start(this);
    if (!this.isLeft) return;
    // Meanwhile nobody wants it any more.
    this.leave();
    throw new Refusal('failed', 'the connection to Prism was lost while the terminal was opened');
  }

  readonly ears: Ears = {
    printed: (bytes) => {
      this.history.push(bytes);
      this.tell({ kind: 'printed' });
      this.changed();
    },
    executed: (command, exitCode) => this.tell({ kind: 'executed', command, exitCode }),
    ended: (status) => {
      if (this.status !== undefined) return;
      this.status = status;
      this.tell({ kind: 'ended' });
      this.changed();
    },
  };

  /** What runs, if it still does. */
  running(): Program {
    if (this.program !== undefined && this.status === undefined) return this.program;
    throw new Refusal('not_found', `what ran in terminal ${this.name} has ended; open another terminal`);
  }

  get pid(): number | null {
    return this.program?.pid ?? null;
  }

  /** Whether it is a terminal at all, or only pipes. */
  get isTty(): boolean {
    return this.program?.isTty ?? false;
  }

  /** `undefined`: as large as its panel. */
  get size(): Size | undefined {
    return this.program?.size;
  }

  /** Resolves after the next change, or after so many milliseconds. */
  change(within: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(late);
        this.waiting.delete(wake);
        resolve();
      };
      const late = setTimeout(wake, within);
      this.waiting.add(wake);
    });
  }

  /** Ends it, and waits until it has. */
  async end(within: number): Promise<void> {
    this.program?.end();
    const until = Date.now() + within;
    while (this.status === undefined && Date.now() < until) await this.change(until - Date.now());
  }

  whenLeft(leave: () => void): void {
    this.leaving.push(leave);
  }

  leave(): void {
    this.isLeft = true;
    if (this.status === undefined) this.program?.end();
    this.leaving.splice(0).forEach((leave) => leave());
  }

  read(after: number | undefined, limit: number): object {
    const isRunning = this.status === undefined;
    const piece: Piece =
      after === undefined ? this.history.last(limit, isRunning) : this.history.after(after, limit, isRunning);
    return {
      terminal: this.name,
      output: piece.text,
      next: piece.next,
      left_out: piece.leftOut,
      is_running: isRunning,
      exit_code: this.status?.exitCode ?? null,
      signal: this.status?.signal ?? null,
    };
  }

  listed(): object {
    return {
      terminal: this.name,
      command: this.about.line,
      cwd: this.about.cwd,
      pid: this.pid,
      rows: this.size?.rows ?? null,
      cols: this.size?.cols ?? null,
      next: this.history.end,
      is_running: this.status === undefined,
      exit_code: this.status?.exitCode ?? null,
    };
  }

  private changed(): void {
    [...this.waiting].forEach((wake) => wake());
  }
}

/** All of this window's. */
export const terminals = new Terminals();
