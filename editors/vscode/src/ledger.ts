// What is known of the editor's documents beside what it says itself: their told versions, how agents have changed
// them, what their files were, and whose doing a change is.

import * as vscode from 'vscode';
import { asText, digestOf, unbroken } from './digest';
import { onDisk } from './disk';
import { History } from './history';
import { realOr } from './paths';
import type { Span } from './place';
import type { Roots } from './roots';
import { Versions } from './versions';

/** One open text. It is asked for anew each time: a text moves on. */
export interface Text {
  readonly uri: vscode.Uri;
  /** Where its file really is. */
  readonly path: string;
  readonly document: vscode.TextDocument;
  /** As it is told. */
  readonly version: number;
  readonly isDirty: boolean;
}

/** A change that has happened. */
export interface Changed {
  readonly text: Text;
  /** The version that it was made on; `undefined` if more than one change lies between. */
  readonly base: number | undefined;
  readonly edits: readonly { readonly range: Span; readonly newText: string }[];
  /** The session whose command it was. */
  readonly by: string | undefined;
  readonly reason: string;
}

/** A change on its way into the editor. */
interface Expected {
  readonly version: number;
  readonly text: string;
  readonly by: string;
  readonly reason: string;
  readonly landed: () => void;
}

interface Known {
  readonly path: string;
  history: History;
  /** The editor's version when last looked at. */
  version: number;
  /** Of the file that the text was made from, when it was last read or written. */
  saved: Promise<string | undefined>;
  /** What was written to the file from here, for the text to follow. */
  follows: { readonly digest: string; readonly by: string } | undefined;
  expected: Expected | undefined;
  /** Tells a change of which it is not clear yet whether it came from the disk. */
  held: ((isDirty: boolean) => void) | undefined;
}

/** How long the editor may take to make up its mind whether a text is unsaved: it says so a moment after the change. */
const SETTLED_MS = 30;

export class Ledger implements vscode.Disposable {
  private readonly versions = new Versions(Date.now());
  private readonly known = new Map<vscode.TextDocument, Known>();
  private readonly changes = new vscode.EventEmitter<Changed>();
  private readonly dirtied = new vscode.EventEmitter<vscode.TextDocument>();
  private readonly closes = new vscode.EventEmitter<string>();
  private readonly subscriptions: vscode.Disposable;
  /** A text has changed, and whose doing it was. */
  readonly onChange = this.changes.event;
  /** A text became unsaved or saved, without another change. */
  readonly onDirty = this.dirtied.event;
  /** The editor has closed the document of this path. */
  readonly onClose = this.closes.event;

  constructor(private readonly roots: Roots) {
    for (const document of vscode.workspace.textDocuments) this.note(document);
    this.subscriptions = vscode.Disposable.from(
      vscode.workspace.onDidOpenTextDocument((document) => void this.note(document)),
      vscode.workspace.onDidChangeTextDocument((change) => this.hear(change)),
      vscode.workspace.onDidSaveTextDocument((document) => {
        const known = this.note(document);
        if (known) known.saved = Promise.resolve(digestOf(unbroken(document.getText())));
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.forget(document)),
      vscode.workspace.onDidRenameFiles(({ files }) => {
        for (const { oldUri, newUri } of files) this.renamed(realOr(oldUri.fsPath), realOr(newUri.fsPath));
      }),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
    this.changes.dispose();
    this.dirtied.dispose();
    this.closes.dispose();
  }

  /** A document as a text; `undefined` for what is no file, or in none of the folders. */
  of(document: vscode.TextDocument): Text | undefined {
    const known = this.note(document);
    if (!known || !this.roots.holds(known.path)) return undefined;
    const version = this.versions.told(known.path, document, document.version, () => digestOf(document.getText()));
    return { uri: document.uri, path: known.path, document, version, isDirty: document.isDirty };
  }

  /** The document of a real path, if the editor has it open. */
  at(path: string): vscode.TextDocument | undefined {
    return vscode.workspace.textDocuments.find((document) => this.note(document)?.path === path);
  }

  historyOf(document: vscode.TextDocument): History {
    return this.note(document)?.history ?? new History();
  }

  /** Of the file that a text was made from, whatever its line breaks. */
  async savedDigest(document: vscode.TextDocument): Promise<string | undefined> {
    return this.note(document)?.saved;
  }

  /** Notes that a file is about to be written for a session, so that the text that follows it is known as theirs. */
  follows(path: string, content: Uint8Array, by: string): void {
    const document = this.at(path);
    const known = document && this.note(document);
    const text = asText(content);
    if (known && text !== undefined) known.follows = { digest: digestOf(unbroken(text)), by };
  }

  /** Notes a change that the editor is about to make for a session. What is returned resolves when it has come. */
  expect(document: vscode.TextDocument, text: string, by: string, reason: string): Promise<void> {
    return new Promise((landed) => {
      const known = this.note(document);
      if (known) known.expected = { version: document.version, text, by, reason, landed };
      else landed();
    });
  }

  expectNoMore(document: vscode.TextDocument): void {
    const known = this.known.get(document);
    if (known) known.expected = undefined;
  }

  private hear(change: vscode.TextDocumentChangeEvent): void {
    const { document } = change;
    const known = this.note(document);
    if (!known) return;
    if (change.contentChanges.length === 0) {
      known.held?.(document.isDirty);
      this.dirtied.fire(document);
      return;
    }
    // Another change came before it was clear what the one before was; that one is told as it was then.
    known.held?.(false);
    const isOne = document.version === known.version + 1;
    known.version = document.version;
    const text = this.of(document);
    if (!text) return;
    // Several changes that came as one are not all about the text before.
    const base = isOne ? text.version - 1 : undefined;
    const edits = change.contentChanges.map(({ range, text: newText }) => ({ range, newText }));
    const tell = (isDirty: boolean, by: string | undefined, reason: string): void =>
      this.changes.fire({ text: { ...text, isDirty }, base, edits, by, reason });
    const { expected } = known;
    if (expected && document.version > expected.version && document.getText() === expected.text) {
      // The editor says that it is unsaved a moment later.
      tell(true, expected.by, expected.reason);
      expected.landed();
      return;
    }
    known.history.clear();
    if (document.isDirty) tell(true, undefined, 'edit');
    else this.hold(document, known, tell);
  }

  /** Tells a change once it is clear whether somebody made it, or the text has followed its file. */
  private hold(
    document: vscode.TextDocument,
    known: Known,
    tell: (isDirty: boolean, by: string | undefined, reason: string) => void,
  ): void {
    const content = document.getText();
    const timer = setTimeout(() => known.held?.(document.isDirty), SETTLED_MS);
    known.held = (isDirty) => {
      clearTimeout(timer);
      known.held = undefined;
      if (isDirty || document.getText() !== content) return tell(isDirty, undefined, 'edit');
      const digest = digestOf(unbroken(content));
      known.saved = Promise.resolve(digest);
      const by = known.follows?.digest === digest ? known.follows.by : undefined;
      tell(false, by, by === undefined ? 'disk' : 'edit');
    };
  }

  private forget(document: vscode.TextDocument): void {
    const known = this.known.get(document);
    if (!known) return;
    this.known.delete(document);
    this.versions.closed(known.path, document, () => digestOf(document.getText()));
    this.closes.fire(known.path);
  }

  /** The text of a file that is renamed comes along, and with it how it came to be. */
  private renamed(path: string, newPath: string): void {
    const [from, to] = [this.knownAt(path), this.knownAt(newPath)];
    if (from && to && from[0].getText() === to[0].getText()) to[1].history = from[1].history;
  }

  private knownAt(path: string): [vscode.TextDocument, Known] | undefined {
    return [...this.known].find(([, known]) => known.path === path);
  }

  private note(document: vscode.TextDocument): Known | undefined {
    if (document.uri.scheme !== 'file' || document.isClosed) return undefined;
    const found = this.known.get(document);
    if (found) return found;
    const path = realOr(document.uri.fsPath);
    const known: Known = {
      path,
      history: new History(),
      version: document.version,
      saved: this.roots.holds(path) ? digestOnDisk(path) : Promise.resolve(undefined),
      follows: undefined,
      expected: undefined,
      held: undefined,
    };
    this.known.set(document, known);
    return known;
  }
}

async function digestOnDisk(path: string): Promise<string | undefined> {
  try {
    const text = asText((await onDisk(path)) ?? new Uint8Array());
    return text === undefined ? undefined : digestOf(unbroken(text));
  } catch {
    return undefined;
  }
}
