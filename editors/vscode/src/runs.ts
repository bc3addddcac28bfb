// What agents run in the folders of this window, where the person can see it: each run in a terminal that only shows. The daemon runs
// it, behind its fence, and tells what is printed.

import * as vscode from 'vscode';
import type { Desk } from './desk';
import type { Show, ShowEnded, ShowOutput, ShowResized } from './protocol';
import { Screen } from './screen';

/** Runs that are over and still to be seen. Beyond it the oldest goes. */
const MAX_ENDED = 4;
/** Runs at the same time. Beyond it further ones are not shown; the daemon runs fewer. */
const MAX_RUNNING = 64;

/** One terminal of the editor's, with what is shown in it. */
interface Pane {
  readonly title: string;
  readonly screen: Screen;
  readonly terminal: vscode.Terminal;
}

export function showRuns(desk: Desk): vscode.Disposable {
  const runs = new Runs();
  const on = desk.line.onMessage.bind(desk.line);
  desk.line.registerWith({ shows: true });
  return vscode.Disposable.from(
    runs,
    on('show', (message) => runs.begin(message as unknown as Show)),
    on('show_output', (message) => runs.print(message as unknown as ShowOutput)),
    on('show_resized', (message) => runs.resize(message as unknown as ShowResized)),
    on('show_ended', (message) => runs.end(message as unknown as ShowEnded)),
    desk.line.onState(({ is }) => {
      if (is !== 'connected') runs.lose();
    }),
  );
}

export class Runs implements vscode.Disposable {
  private readonly running = new Map<number, Pane>();
  /** The oldest first. */
  private ended: Pane[] = [];

  begin(show: Show): void {
    if (this.running.size >= MAX_RUNNING || this.running.has(show.id)) return;
    const pane = this.again(show) ?? this.opened(show);
    this.running.set(show.id, pane);
    pane.screen.begin(show);
  }

  print({ id, text }: ShowOutput): void {
    this.running.get(id)?.screen.write(text);
  }

  resize({ id, rows, cols }: ShowResized): void {
    this.running.get(id)?.screen.resize(rows, cols);
  }

  end({ id, ...ended }: Omit<ShowEnded, 'type'>): void {
    const pane = this.running.get(id);
    if (!pane) return;
    this.running.delete(id);
    pane.screen.end(pane.title, ended);
    this.ended.push(pane);
    this.tidy();
  }

  /** The connection is gone: what runs may run on, and nobody tells of it here. */
  lose(): void {
    for (const id of [...this.running.keys()]) this.end({ id, note: 'or not; the connection to Prism was lost' });
  }

  dispose(): void {
    for (const pane of [...this.running.values(), ...this.ended]) close(pane);
    this.running.clear();
    this.ended = [];
  }

  /** What is run again is shown where it was the last time. */
  private again({ title, kind }: Show): Pane | undefined {
    const index = kind === 'command' ? this.ended.findIndex((pane) => pane.title === title) : -1;
    return index < 0 ? undefined : this.ended.splice(index, 1)[0];
  }

  private opened({ title }: Show): Pane {
    const screen = new Screen();
    // It is there to be looked at; nobody is made to.
    const iconPath = new vscode.ThemeIcon('robot');
    const terminal = vscode.window.createTerminal({ name: title, pty: screen, iconPath, isTransient: true });
    const pane = { title, screen, terminal };
    screen.onClosedByPerson(() => this.forget(pane));
    return pane;
  }

  private forget(pane: Pane): void {
    this.ended = this.ended.filter((one) => one !== pane);
    for (const [id, one] of this.running) if (one === pane) this.running.delete(id);
  }

  /** Not the one that the person looks at. */
  private tidy(): void {
    while (this.ended.length > MAX_ENDED) {
      const index = this.ended.findIndex(({ terminal }) => terminal !== vscode.window.activeTerminal);
      const [pane] = this.ended.splice(Math.max(index, 0), 1);
      if (pane) close(pane);
    }
  }
}

function close({ screen, terminal }: Pane): void {
  terminal.dispose();
  screen.dispose();
}
