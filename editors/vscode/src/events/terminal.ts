// What happens in the terminals that agents have opened: `process_started`, `output_received`, `command_executed`, `process_ended`.
// A person's own terminals are nobody else's business.

import * as vscode from 'vscode';

import type { Desk } from '../desk';
import { terminals, type Terminal } from '../terminal/terminals';

/** How often output is told at most. The first time is that late as well: until then the daemon has not heard of the terminal. */
const TELLING = 100;

/** Bytes that are told at once: the last of what came. The rest is there to be read. */
const MAX_TOLD = 4 << 10;

interface Due {
  /** What is told when its time has come: before what was printed, and after it. */
  readonly first: (() => void)[];
  readonly last: (() => void)[];
  /** How far output was told. */
  told: number;
  timer: NodeJS.Timeout | undefined;
}

export function watchTerminal(desk: Desk): vscode.Disposable {
  const all = new Map<Terminal, Due>();

  const tell = (terminal: Terminal, event: string, data: object) => {
    const { session: by } = terminal.about;
    desk.voice.tell(event, undefined, { terminal: terminal.name, by, ...data });
  };
  const output = (terminal: Terminal, due: Due) => {
    const { history } = terminal;
    const from = Math.max(due.told, history.end - MAX_TOLD);
    const piece = history.after(from, MAX_TOLD, terminal.status === undefined);
    if (piece.next <= due.told) return;
    due.told = piece.next;
    tell(terminal, 'output_received', { text: piece.text, next: piece.next });
  };
  const flush = (terminal: Terminal, due: Due) => {
    due.timer = undefined;
    due.first.splice(0).forEach((word) => word());
    output(terminal, due);
    due.last.splice(0).forEach((word) => word());
    if (terminal.status !== undefined) all.delete(terminal);
  };

  const listening = terminals.onTold(({ terminal, what }) => {
    const due = all.get(terminal) ?? { first: [], last: [], told: 0, timer: undefined };
    all.set(terminal, due);
    const { pid, about } = terminal;
    if (what.kind === 'started') {
      due.first.push(() => tell(terminal, 'process_started', { command: about.line, pid }));
    } else if (what.kind === 'executed') {
      due.last.push(() => tell(terminal, 'command_executed', { command: what.command, exit_code: what.exitCode }));
    } else if (what.kind === 'ended') {
      const { exitCode = null, signal = null } = terminal.status ?? {};
      due.last.push(() => tell(terminal, 'process_ended', { pid, exit_code: exitCode, signal }));
    }
    due.timer ??= setTimeout(() => flush(terminal, due), TELLING);
  });
  // Whoever comes next knows nothing of them, and could never end them.
  const lost = desk.line.onState(({ is }) => {
    if (is !== 'connected') terminals.close();
  });
  return new vscode.Disposable(() => {
    lost.dispose();
    listening.dispose();
    all.forEach((due) => clearTimeout(due.timer));
    terminals.close();
  });
}
