// Configs that wait for the person to see them. They are only shown here: an extension host may be led, so their word is
// `prism trust` in a terminal, which shows the same and asks.
//
// An extension can close no notification but one of progress, and such a notice has to go when it is over. So it is one of
// those, with links in place of buttons.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { Board } from './board';
import type { Shelf } from './diff';
import type { ConfigView } from './views';
import { cut, label, visible, visibleLines } from './words';

/** What fits into a notification before its links. The editor cuts what is longer than 1000 letters. */
const ROW = 400;

interface Notice {
  readonly view: ConfigView;
  readonly gone: vscode.CancellationTokenSource;
  isAside: boolean;
}

export class Configs implements vscode.Disposable {
  /** By what they are about, also those that the person has put aside: each text is noticed once. */
  private readonly notices = new Map<string, Notice>();
  private readonly changed: vscode.Disposable;

  constructor(
    private readonly board: Board,
    private readonly shelf: Shelf,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.changed = board.onChange(() => this.look());
  }

  /** Opens what is new in it. */
  async show(id: string): Promise<void> {
    const view = this.notices.get(id)?.view;
    if (!view) throw new Error('this config does not wait any more');
    // It begins with the path, and lines are not wrapped here.
    const why = view.why.startsWith(view.path) ? [view.path, view.why.slice(view.path.length)] : [view.why];
    const head = [...why, `In a terminal: ${view.fix}`].map(visible);
    const text = [...head, '', visibleLines(view.unified)].join('\n');
    await this.shelf.showText(`${basename(view.path)}.diff`, text, view.id);
  }

  /** What to type about it. */
  fix(id: string): string {
    const fix = this.notices.get(id)?.view.fix;
    if (!fix) throw new Error('this config does not wait any more');
    // In a terminal a letter that is not seen may be a key that is pressed.
    if (fix !== visible(fix)) throw new Error(`type it yourself, its name has letters that are not seen: ${visible(fix)}`);
    return fix;
  }

  dispose(): void {
    this.changed.dispose();
    for (const { gone } of this.notices.values()) gone.cancel();
  }

  private look(): void {
    const waiting = new Map(this.board.snapshot.configs.map((view) => [view.id, view]));
    for (const [id, notice] of this.notices) {
      if (waiting.has(id)) continue;
      notice.gone.cancel();
      // While the daemon is away nothing is over: what was put aside still is when it comes back.
      if (notice.isAside && !this.board.isTold) continue;
      this.notices.delete(id);
      this.shelf
        .close(id)
        .then(undefined, (error: unknown) => this.log.warn(`a difference was not closed: ${String(error)}`));
    }
    for (const [id, view] of waiting) if (!this.notices.has(id)) void this.notice(view);
  }

  private async notice(view: ConfigView): Promise<void> {
    const notice: Notice = { view, gone: new vscode.CancellationTokenSource(), isAside: false };
    this.notices.set(view.id, notice);
    const options = { location: vscode.ProgressLocation.Notification, title: titleOf(view), cancellable: true };
    await vscode.window.withProgress(options, async (progress, aside) => {
      // A full bar does not move: nothing goes on here.
      progress.report({ increment: 100 });
      await new Promise<void>((done) => {
        aside.onCancellationRequested(() => {
          notice.isAside = true;
          done();
        });
        notice.gone.token.onCancellationRequested(() => done());
      });
    });
    notice.gone.dispose();
  }
}

/** In a line, for lists of what waits. */
export function configInShort(view: ConfigView): string {
  return `${visible(view.path)} waits for you to see it`;
}

function titleOf(view: ConfigView): string {
  const link = (words: string, command: string): string => {
    return `[${words}](command:prism.${command}?${encodeURIComponent(JSON.stringify([view.id]))})`;
  };
  // What is in a file's name is no link.
  const why = cut(label(view.why), ROW).replaceAll('](', ']\u2060(');
  const links = [link('Show the difference', 'showConfig'), link('Type the command in a terminal', 'typeTrust')];
  return `A config waits for you to see it: ${why}. ${links.join(' · ')}`;
}
