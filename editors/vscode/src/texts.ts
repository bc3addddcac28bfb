// Open texts: which there are, opening them, and changing them.
//
// A buffer is a file's text that the person has in a tab, that an agent has opened, or that is unsaved. The editor has
// more documents open than that, for its own purposes; they are nobody's buffers.

import * as vscode from 'vscode';
import { asText, digestOf, isSameText, unbroken } from './digest';
import { checkText, onDisk } from './disk';
import { applied, difference, offsets, type TextEdit, withBreaks } from './edits';
import type { Way } from './history';
import { type Changed, Ledger, type Text } from './ledger';
import { isBeneath, realOr } from './paths';
import type { Span } from './place';
import { Refusal, wrong } from './refusal';
import type { Roots } from './roots';
import { once, within } from './wait';

export type { Changed, Text } from './ledger';

/** Edits of one text, and the version that they are about. */
export interface Change {
  readonly version?: number | undefined;
  readonly edits: readonly { readonly range: Span; readonly newText: string }[];
}

/** Edits that are worked out on a text as it is when they are made. */
export interface Planned {
  readonly uri: vscode.Uri;
  readonly edits: (text: Text) => readonly TextEdit[];
}

/** Buffers that came or went. */
export interface Moved {
  readonly opened: readonly Text[];
  /** Paths. */
  readonly closed: readonly string[];
}

/**
 * How long a text that nobody has changed may take to follow its file. The editor watches the disk, and is told a
 * little later.
 */
const FOLLOW_WITHIN_MS = 3_000;
/** How long the editor may take to tell of a change that it has made, and that a text is unsaved now. */
const TOLD_WITHIN_MS = 500;
/** How long an edit waits for others of the same text. */
const TURN_WITHIN_MS = 10_000;
/** How often an edit is worked out again because somebody types. */
const MAX_TRIES = 10;

export class Texts implements vscode.Disposable {
  private readonly ledger: Ledger;
  /** Paths that agents have opened. */
  private readonly opened = new Set<string>();
  /** The buffers that were told of, by path. */
  private listed: ReadonlySet<string>;
  private readonly changes = new vscode.EventEmitter<Changed>();
  private readonly moves = new vscode.EventEmitter<Moved>();
  /** Texts that edits are on their way to. */
  private readonly busy = new Set<vscode.TextDocument>();
  private readonly turns = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable;
  /** A buffer has changed, and whose doing it was. Changes that change nothing are none. */
  readonly onChange = this.changes.event;
  /** A document became unsaved or saved, without another change. */
  readonly onDirty: vscode.Event<vscode.TextDocument>;
  /** Buffers came or went. */
  readonly onMove = this.moves.event;

  constructor(
    roots: Roots,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.ledger = new Ledger(roots);
    this.onDirty = this.ledger.onDirty;
    this.listed = new Set(this.all().map((text) => text.path));
    this.subscriptions = vscode.Disposable.from(
      this.ledger,
      this.ledger.onChange((change) => {
        this.recount();
        if (change.text.isDirty || this.listed.has(change.text.path)) this.changes.fire(change);
      }),
      this.ledger.onDirty(() => this.recount()),
      this.ledger.onClose((path) => this.close(path)),
      vscode.workspace.onDidOpenTextDocument(() => this.recount()),
      vscode.window.tabGroups.onDidChangeTabs(() => this.recount()),
      roots.onChange(() => this.recount()),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
    for (const emitter of [this.changes, this.moves, this.turns]) emitter.dispose();
  }

  // --- What there is ---

  /** All buffers, by path. */
  all(): Text[] {
    const shown = shownFiles();
    const texts = vscode.workspace.textDocuments.map((document) => this.of(document));
    const buffers = texts.filter((text): text is Text => text !== undefined && this.isBuffer(text, shown));
    return buffers.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  }

  /** The buffer of a real path, if it is open. */
  at(path: string): Text | undefined {
    const document = this.ledger.at(path);
    const text = document && this.of(document);
    return text && this.isBuffer(text, shownFiles()) ? text : undefined;
  }

  /** A document as a text; `undefined` for what is no file, or in none of the folders. */
  of(document: vscode.TextDocument): Text | undefined {
    return this.ledger.of(document);
  }

  /** Whether the file of an unsaved text is another than the text was made from. */
  async isChangedOnDisk(text: Text): Promise<boolean> {
    const there = await onDisk(text.path);
    const now = there && asText(there);
    if (now === undefined) return true;
    // Where it is not known what the text was made from, the editor's own check is the one that counts.
    const saved = await this.ledger.savedDigest(text.document);
    return saved !== undefined && digestOf(unbroken(now)) !== saved;
  }

  /** Unsaved texts at a path or beneath it, for the results of what only sees the disk. */
  unsaved(path: string): string[] {
    return this.all().flatMap((text) => (text.isDirty && isBeneath(text.path, path) ? [text.path] : []));
  }

  // --- Opening ---

  /** Opens the text of a file, as the file is now unless it has unsaved changes. The person sees nothing of it. */
  async open(uri: vscode.Uri): Promise<Text> {
    const looked = await this.look(uri);
    if ('bytes' in looked)
      throw wrong(`${JSON.stringify(looked.path)}: it is no text; write_file replaces it as a whole`);
    return looked;
  }

  /** The same of any file: what is no text comes as its bytes. */
  async look(uri: vscode.Uri): Promise<Text | { readonly path: string; readonly bytes: Uint8Array }> {
    const path = realOr(uri.fsPath);
    const bytes = await onDisk(path);
    const open = this.ledger.at(path);
    if (bytes === undefined) {
      // Somebody has removed the file, and its unsaved text is all that is left.
      const left = open?.isDirty ? this.of(open) : undefined;
      if (left) return left;
      throw new Refusal('not_found', `there is no file ${JSON.stringify(path)}`);
    }
    if (asText(bytes) === undefined && !open?.isDirty) return { path, bytes };
    const document = open ?? (await vscode.workspace.openTextDocument(uri));
    await this.follow(document, bytes);
    this.opened.add(path);
    this.recount();
    const text = this.of(document);
    if (!text) throw new Refusal('outside_root', `${JSON.stringify(path)} is in none of this window's folders`);
    return text;
  }

  /** Notes that agents have no more use for a text. */
  close(path: string): void {
    this.opened.delete(path);
    this.recount();
  }

  /** Notes that a file is about to be written for a session, so that the text that follows it is known as theirs. */
  follows(path: string, content: Uint8Array, by: string): void {
    this.ledger.follows(path, content, by);
  }

  /** Waits until the text of a file that was just written is what was written, if it is open. */
  async caughtUp(path: string): Promise<void> {
    const document = this.ledger.at(path);
    const bytes = document && (await onDisk(path));
    if (document && bytes) await this.follow(document, bytes);
  }

  /** Waits until something holds of a text, and no longer than that; it is looked at whenever a text has changed. */
  async until(holds: () => boolean, withinMs: number): Promise<void> {
    if (!holds()) await once(vscode.workspace.onDidChangeTextDocument, () => holds(), withinMs);
  }

  // --- Changing ---

  /**
   * Makes edits, all or none. Refused if one of the texts is at another version by then; what a person types meanwhile
   * stays.
   */
  async apply(changes: ReadonlyMap<vscode.Uri, Change>, by: string, reason = 'edit'): Promise<Text[]> {
    const planned = [...changes].map(([uri, { version, edits }]) => {
      // Places are about one version, also if nobody named it.
      let bound = version;
      const plan = (text: Text): TextEdit[] => {
        bound ??= text.version;
        if (bound !== text.version) throw stale(text);
        return offsets(text.document.getText(), edits);
      };
      return { uri, edits: plan };
    });
    return this.edit(planned, by, reason);
  }

  /**
   * The same of edits that are worked out on the texts as they are; worked out again if somebody types at that moment.
   */
  async edit(planned: readonly Planned[], by: string, reason = 'edit'): Promise<Text[]> {
    return this.inTurn(
      planned.map(({ uri }) => uri),
      async (documents) => {
        for (let tries = 1; ; tries += 1) {
          // From here on nothing is waited for until the editor has the edits, and with them the versions that they are
          // about.
          const steps = planned.map(({ edits }, i) => {
            const text = this.of(documents[i] as vscode.TextDocument) as Text;
            if (documents.indexOf(text.document) !== i) throw wrong(`${JSON.stringify(text.path)} is named twice`);
            return { text, edits: edits(text) };
          });
          try {
            const made = await this.make(steps, by, reason);
            for (const [document, back] of made) this.ledger.historyOf(document).changed(back);
            return await this.after(documents);
          } catch (error) {
            const isStale = error instanceof Refusal && error.code === 'changed';
            if (!isStale || tries >= MAX_TRIES || documents.some((document) => document.isClosed)) throw error;
          }
        }
      },
    );
  }

  /** Leads a text back by so many changes of agents', or forth again. */
  async retrace(uri: vscode.Uri, fits: (text: Text) => void, way: Way, count: number, by: string): Promise<Text> {
    return this.inTurn([uri], async (documents) => {
      const text = this.of(documents[0] as vscode.TextDocument) as Text;
      fits(text);
      const now = text.document.getText();
      const { text: goal, walk } = this.ledger.historyOf(text.document).retraced(now, way, count);
      await this.make([{ text, edits: [difference(now, goal)] }], by, way);
      walk();
      return (await this.after(documents))[0] as Text;
    });
  }

  /** Opens texts, waits until no other edit of any of them is on its way, and keeps others away meanwhile. */
  private async inTurn<T>(
    uris: readonly vscode.Uri[],
    doing: (documents: readonly vscode.TextDocument[]) => Promise<T>,
  ): Promise<T> {
    const documents: vscode.TextDocument[] = [];
    for (const uri of uris) documents.push((await this.open(uri)).document);
    const isFree = (): boolean => !documents.some((document) => this.busy.has(document));
    const end = Date.now() + TURN_WITHIN_MS;
    while (!isFree() && Date.now() < end) await once(this.turns.event, isFree, end - Date.now());
    if (!isFree()) throw new Refusal('rate_limited', 'other edits of this text are on their way; try again', 1_000);
    const closed = documents.find((document) => document.isClosed);
    if (closed)
      throw new Refusal('changed', `${JSON.stringify(closed.uri.fsPath)} was closed meanwhile; open it again`);
    for (const document of documents) this.busy.add(document);
    try {
      return await doing(documents);
    } finally {
      for (const document of documents) this.busy.delete(document);
      this.turns.fire();
    }
  }

  /** Has the editor make the edits. Returns what leads back. */
  private async make(
    steps: readonly { readonly text: Text; readonly edits: readonly TextEdit[] }[],
    by: string,
    reason: string,
  ): Promise<Map<vscode.TextDocument, TextEdit[]>> {
    const edit = new vscode.WorkspaceEdit();
    const made = new Map<vscode.TextDocument, TextEdit[]>();
    const expected = steps.map(({ text: { document }, edits }) => {
      // The editor gives all line breaks of a text the same kind.
      const lineBreak = document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
      const fitted = edits.map((one) => ({ ...one, newText: withBreaks(one.newText, lineBreak) }));
      const { text: goal, back } = applied(document.getText(), fitted);
      checkText(goal);
      made.set(document, back);
      for (const { start, end, newText } of fitted) {
        edit.replace(document.uri, new vscode.Range(document.positionAt(start), document.positionAt(end)), newText);
      }
      return { document, goal, version: document.version };
    });
    const landings = expected.map(({ document, goal }) => this.ledger.expect(document, goal, by, reason));
    try {
      if (!(await vscode.workspace.applyEdit(edit))) {
        const moved = expected.find(({ document, version }) => document.isClosed || document.version !== version);
        const text = moved && this.of(moved.document);
        if (text) throw stale(text);
        throw new Refusal('failed', 'the editor did not make the edit; the file may be closed or read-only');
      }
      await within(TOLD_WITHIN_MS, Promise.all(landings));
    } finally {
      for (const { document } of expected) this.ledger.expectNoMore(document);
    }
    return made;
  }

  /** The texts after a change, once the editor has said of all that they are unsaved. */
  private async after(documents: readonly vscode.TextDocument[]): Promise<Text[]> {
    await this.until(() => documents.every((document) => document.isDirty), TOLD_WITHIN_MS);
    return documents.map((document) => this.of(document) as Text);
  }

  // --- What happens ---

  /** Tells which buffers came and went since it was last told. */
  private recount(): void {
    const all = this.all();
    const now = new Set(all.map((text) => text.path));
    const opened = all.filter((text) => !this.listed.has(text.path));
    const closed = [...this.listed].filter((path) => !now.has(path));
    this.listed = now;
    if (opened.length > 0 || closed.length > 0) this.moves.fire({ opened, closed });
  }

  /** Waits until a text that nobody has changed is what its file is. */
  private async follow(document: vscode.TextDocument, bytes: Uint8Array): Promise<void> {
    const goal = asText(bytes);
    if (goal === undefined) return;
    const isThere = (): boolean => document.isDirty || document.isClosed || isSameText(goal, document.getText());
    await this.until(isThere, FOLLOW_WITHIN_MS);
    if (!isThere()) this.log.debug(`${document.uri.fsPath} does not follow its file`);
  }

  private isBuffer(text: Text, shown: ReadonlySet<string>): boolean {
    return text.isDirty || this.opened.has(text.path) || shown.has(text.uri.toString());
  }
}

/** Says that an order was made for another version than there is. */
export function stale(text: Text): Refusal {
  const path = JSON.stringify(text.path);
  return new Refusal(
    'changed',
    `${path} is at version ${text.version} by now; open it again, then make the edit for that`,
  );
}

/** The language of a text, by the editor's name; `null` for what is only known to be text. */
export function languageOf(text: Text): string | null {
  return text.document.languageId === 'plaintext' ? null : text.document.languageId;
}

/** The files that have a tab. */
function shownFiles(): Set<string> {
  const shown = new Set<string>();
  for (const { input } of vscode.window.tabGroups.all.flatMap((group) => group.tabs)) {
    if (input instanceof vscode.TabInputText) shown.add(input.uri.toString());
    if (input instanceof vscode.TabInputTextDiff) shown.add(input.modified.toString());
  }
  return shown;
}
