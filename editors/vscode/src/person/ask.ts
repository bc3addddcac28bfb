// Which question is asked when: one at a time, the oldest first, and by itself only what is about this window's folders.
// What the person puts aside stays in the status bar and in the tree, and comes back from there.

import * as vscode from 'vscode';
import { Objection, type Board } from './board';
import type { Texts } from '../texts';
import { once } from '../wait';
import { askAboutConfirmation } from './confirmation';
import type { Shelf } from './diff';
import { askAboutRequest } from './request';
import { keyOf, text, waiting, type Waiting } from './views';
import { visible } from './words';

/** A question does not come between two keystrokes: it waits for a pause this long … */
const PAUSE_MS = 2000;
/** … but not longer than this. The status bar has turned already. */
const MAX_WAIT_MS = 20_000;
/** How long the status bar says what became of a question. */
const TOLD_MS = 8000;

export class Asker implements vscode.Disposable {
  private current: { key: string; one: Waiting; gone: vscode.CancellationTokenSource } | undefined;
  /** What the person has put aside, by its key; it is not asked again by itself. */
  private readonly aside = new Set<string>();
  private readonly pause: Pause;
  private readonly changed: vscode.Disposable;
  private isOver = false;

  /** `folders` are those of this window, as the disk knows them. */
  constructor(
    private readonly board: Board,
    private readonly folders: () => readonly string[],
    private readonly shelf: Shelf,
    texts: Texts,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.pause = new Pause(texts);
    this.changed = board.onChange(() => this.look());
  }

  /** Asks about it now, whatever was put aside. */
  show(one: Waiting): void {
    const key = keyOf(one);
    if (this.current?.key === key) {
      this.shelf.back();
      return;
    }
    this.aside.delete(key);
    if (this.current) this.aside.add(this.current.key);
    this.current?.gone.cancel();
    void this.askAbout(one, false);
  }

  /** Whether it is asked in this window by itself. */
  isHere(one: Waiting): boolean {
    return placesOf(one, this.board).some((place) => this.folders().some((folder) => touches(place, folder)));
  }

  dispose(): void {
    this.isOver = true;
    this.changed.dispose();
    this.current?.gone.cancel();
    this.pause.dispose();
  }

  /** Takes back what is decided, and asks what is next. */
  private look(): void {
    if (this.isOver) return;
    const open = waiting(this.board.snapshot);
    const keys = new Set(open.map(keyOf));
    if (this.current && !keys.has(this.current.key)) this.current.gone.cancel();
    // While the daemon is away nothing is over: what was put aside still is when it comes back.
    if (this.current || !this.board.isTold) return;
    for (const key of this.aside) if (!keys.has(key)) this.aside.delete(key);
    const next = open.find((one) => !this.aside.has(keyOf(one)) && this.isHere(one));
    if (next) void this.askAbout(next, true);
  }

  private async askAbout(one: Waiting, politely: boolean): Promise<void> {
    const current = { key: keyOf(one), one, gone: new vscode.CancellationTokenSource() };
    this.current = current;
    const gone = current.gone.token;
    let isAnswered = false;
    try {
      if (politely) await this.pause.come(gone);
      if (gone.isCancellationRequested) return;
      const decided =
        one.kind === 'request'
          ? await askAboutRequest(one, this.board, this.shelf, gone)
          : await askAboutConfirmation(one, this.board, this.shelf, gone);
      isAnswered = decided !== undefined;
      if (decided !== undefined) tell(decided);
      // What was decided is in the snapshot a moment longer, and must not be asked again.
      if (isAnswered || !gone.isCancellationRequested) this.aside.add(current.key);
    } catch (error) {
      // A word that was not taken is no decision: it is asked again only if the person wants it.
      isAnswered = true;
      this.aside.add(current.key);
      const why = error instanceof Error ? error.message : String(error);
      this.log.warn(`the answer was not taken: ${why}`);
      if (error instanceof Objection && ['not_pending', 'not_waiting', 'lost'].includes(error.code)) tell(why);
      else void vscode.window.showWarningMessage(`Prism did not take the answer: ${visible(why)}`);
    } finally {
      await this.shelf
        .close(one.id)
        .then(undefined, (error: unknown) => this.log.warn(`a preview was not closed: ${String(error)}`));
      if (this.current === current) this.current = undefined;
      if (!isAnswered && !this.isOver && this.isGone(current.key)) tell(this.farewell(one));
      current.gone.dispose();
      if (!this.current) this.look();
    }
  }

  private isGone(key: string): boolean {
    return !waiting(this.board.snapshot).some((one) => keyOf(one) === key);
  }

  /** What became of a question that was taken back, as far as it is known here. */
  private farewell(one: Waiting): string {
    if (!this.board.isConnected) return 'not connected, so nothing can be decided here';
    const granted = this.board.snapshot.grants.some((grant) => one.kind === 'request' && grant.request === one.id);
    if (granted) return `${one.agent} was allowed elsewhere`;
    if (one.expiresAt > 0 && one.expiresAt <= Date.now()) return `what ${one.agent} asked has lapsed`;
    return `what ${one.agent} asked was answered elsewhere`;
  }
}

/** The folders and files that something is about. */
function placesOf(one: Waiting, board: Board): readonly string[] {
  if (one.kind === 'request') return one.roots;
  const { shown } = one;
  const named = ['path', 'cwd', 'from', 'to'].map((name) => text(shown[name])).filter(Boolean);
  if (named.length > 0) return named;
  return board.snapshot.grants.find((grant) => grant.id === one.session)?.roots ?? [];
}

/** Whether one is the other, or above or beneath it. */
export function touches(one: string, other: string): boolean {
  const [a, b] = [`${one.replace(/\/+$/, '')}/`, `${other.replace(/\/+$/, '')}/`];
  return a.startsWith(b) || b.startsWith(a);
}

function tell(what: string): void {
  vscode.window.setStatusBarMessage(`Prism: ${visible(what)}`, TOLD_MS);
}

/** Knows whether the person is typing. */
class Pause implements vscode.Disposable {
  private typedAt = 0;
  private readonly typing: vscode.Disposable;

  constructor(texts: Texts) {
    const typed = (): void => {
      this.typedAt = Date.now();
    };
    this.typing = vscode.Disposable.from(
      texts.onChange(({ by, reason }) => {
        if (by === undefined && reason === 'edit') typed();
      }),
      vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
        if (kind === vscode.TextEditorSelectionChangeKind.Keyboard) typed();
      }),
    );
  }

  /** Waits until they have stopped for a moment. */
  async come(gone: vscode.CancellationToken): Promise<void> {
    const latest = Date.now() + MAX_WAIT_MS;
    // The window's answer comes after all that it has told before: what was typed by now is known then.
    await vscode.commands.executeCommand('setContext', 'prism.asking', latest);
    while (!gone.isCancellationRequested) {
      const left = Math.min(this.typedAt + PAUSE_MS, latest) - Date.now();
      if (left <= 0) return;
      await once(gone.onCancellationRequested, () => true, left);
    }
  }

  dispose(): void {
    this.typing.dispose();
  }
}
