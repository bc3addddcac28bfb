// Texts that only the person sees: both sides of a change, a command in full. They are documents of a scheme of their own,
// so that they are nobody's buffers, and are closed when what they are about is decided.

import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { digestOf } from '../digest';
import { applied, placesOf } from './unified';

export const SCHEME = 'prism-diff';

/** A file whose text was changed is shown whole up to this size; beyond it only the changed places are. */
const MAX_WHOLE_BYTES = 8 * 1024 * 1024;

/** Lines of an editor that the question covers. */
const COVERED = 8;

/** Texts in it are wrapped, so that nothing is out of sight (package.json). */
const LANGUAGE = 'prism-shown';

export interface Change {
  readonly path: string;
  /** SHA-256 of the text that it was made from; empty if there is none yet. */
  readonly digest: string;
  readonly unified: string;
  readonly agent: string;
}

interface Side {
  readonly name: string;
  readonly text: string;
}

/** What a person says from the editor that they look at. */
export type Said = 'allow' | 'deny' | 'ask';

export class Shelf implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly said = new vscode.EventEmitter<Said>();
  private readonly commands = (['allow', 'deny', 'ask'] as const).map((word) =>
    vscode.commands.registerCommand(`prism.shown.${word}`, () => this.said.fire(word)),
  );
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? 'This is over.\n';
  }

  /** Opens a change in a diff editor. `about` is the id under which it is closed again. */
  async showChange(change: Change, about: string): Promise<void> {
    const name = basename(change.path);
    const before = await textBefore(change);
    const after = before === undefined ? undefined : applied(before, change.unified);
    if (before !== undefined && after !== undefined) {
      await this.showTwo(
        `${name}: what ${change.agent} wants to change`,
        { name, text: before },
        { name, text: after },
        about,
      );
      return;
    }
    // The file is not what the change was made from, so it is shown by its own lines alone: those are what was signed.
    const parts = placesOf(change.unified);
    if (parts === undefined) {
      const head = [`${change.agent} wants to change ${change.path}`];
      await this.showText(`${name}.diff`, underQuestion(head, change.unified), about);
      return;
    }
    const title = `${name}: what ${change.agent} wants to change (only these places)`;
    await this.showTwo(title, { name, text: parts.before }, { name, text: parts.after }, about);
  }

  async showTwo(title: string, before: Side, after: Side, about: string): Promise<void> {
    const left = this.put(about, 'before', before);
    const right = this.put(about, 'after', after);
    const options: vscode.TextDocumentShowOptions = { preview: true, preserveFocus: true };
    await vscode.commands.executeCommand('vscode.diff', left, right, title, options);
  }

  async showText(name: string, text: string, about: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.put(about, 'all', { name, text }));
    if (!name.endsWith('.diff')) await vscode.languages.setTextDocumentLanguage(document, LANGUAGE);
    await vscode.window.showTextDocument(document, { preview: true, preserveFocus: true });
  }

  /**
   * Lets the person look at what is open about it, with nothing above it. They go on by the buttons of the editor's title;
   * `undefined` if they closed it, or if it is gone.
   */
  async look(
    about: string,
    kind: 'request' | 'confirmation',
    gone: vscode.CancellationToken,
  ): Promise<Said | undefined> {
    await vscode.commands.executeCommand('setContext', 'prism.looking', kind);
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    const parts: vscode.Disposable[] = [];
    try {
      return await new Promise<Said | undefined>((done) => {
        parts.push(
          this.said.event(done),
          gone.onCancellationRequested(() => done(undefined)),
          vscode.window.tabGroups.onDidChangeTabs(() => {
            if (tabsOf(about).length === 0) done(undefined);
          }),
        );
        if (gone.isCancellationRequested) done(undefined);
      });
    } finally {
      vscode.Disposable.from(...parts).dispose();
      await vscode.commands.executeCommand('setContext', 'prism.looking', undefined);
    }
  }

  /** Leads whoever looks at something back to the question. */
  back(): void {
    this.said.fire('ask');
  }

  /** Closes all that was opened about it. */
  async close(about: string): Promise<void> {
    const open = tabsOf(about);
    for (const key of [...this.texts.keys()]) {
      if (isAbout(vscode.Uri.parse(key), about)) this.texts.delete(key);
    }
    if (open.length > 0) await vscode.window.tabGroups.close(open, true);
  }

  dispose(): void {
    vscode.Disposable.from(this.registered, this.said, ...this.commands).dispose();
    this.texts.clear();
  }

  private put(about: string, side: string, { name, text }: Side): vscode.Uri {
    const uri = vscode.Uri.from({
      scheme: SCHEME,
      authority: authority(about),
      path: `/${side}/${name.replaceAll('/', '∕')}`,
    });
    this.texts.set(uri.toString(), text);
    return uri;
  }
}

/** A text to be read while the question lies over its first lines: those only say what it is about. */
export function underQuestion(head: readonly string[], text: string): string {
  const rest = Array<string>(Math.max(0, COVERED - head.length)).fill('');
  return [...head, ...rest, '─'.repeat(72), text].join('\n');
}

function tabsOf(about: string): vscode.Tab[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.filter(({ input }) => {
    if (input instanceof vscode.TabInputTextDiff) return isAbout(input.modified, about);
    return input instanceof vscode.TabInputText && isAbout(input.uri, about);
  });
}

function isAbout(uri: vscode.Uri, about: string): boolean {
  return uri.scheme === SCHEME && uri.authority === authority(about);
}

/** An id as the part of a URI that is compared without upper case. */
function authority(about: string): string {
  return about.toLowerCase().replace(/[^a-z0-9-]/g, '-');
}

/** The text that a change was made from, if the editor or the disk still has it. */
async function textBefore({ path, digest }: Change): Promise<string | undefined> {
  if (digest === '') return '';
  const open = vscode.workspace.textDocuments.find(({ uri }) => uri.scheme === 'file' && uri.fsPath === path);
  const texts = [async () => open?.getText(), async () => readFile(path, 'utf8').catch(() => undefined)];
  for (const read of texts) {
    const text = await read();
    if (text === undefined || text.length > MAX_WHOLE_BYTES) continue;
    if (digestOf(text) === digest) return text;
  }
  return undefined;
}
