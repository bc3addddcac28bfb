// When the editor last heard of errors in a document, and of which of its texts. Diagnostics carry no version: what
// comes after a change is taken to be about it, unless it comes too soon to be. Documents are held weakly, so what is
// closed is forgotten.

import * as vscode from 'vscode';
import { hasTab } from './tab';

interface Heard {
  /** The document's own number of its text then. */
  readonly version: number;
  readonly at: number;
  /** When it counts, if nothing more comes. */
  readonly settledAt: number;
}

const heard = new WeakMap<vscode.TextDocument, Heard>();
const changedAt = new WeakMap<vscode.TextDocument, number>();

/** Documents that errors are lent to, and until when what is heard of them is about these. */
const muted = new WeakMap<vscode.TextDocument, number>();

/** Texts that were waited for in vain: some extensions look only at files in a tab. */
const silent = new WeakMap<vscode.TextDocument, number>();

/**
 * How long nothing more must come until it counts. The editor gathers what servers say for 50 ms; what comes right
 * after a change was on its way before it, most likely, and is given the time that a server takes to say the next.
 */
const SETTLE_MS = 250;
const SOON_MS = 150;
const SETTLE_SOON_MS = 1_500;

/** How long a text is waited for before nobody waits for it again unless told to. */
const PATIENCE_MS = 2_000;

/** How long after the end of a loan the editor still tells of it. */
const MUTED_MS = 150;

/** Begins to listen. */
export function listen(): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0) changedAt.set(document, Date.now());
    }),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      const [named, now] = [new Set(uris.map(String)), Date.now()];
      for (const document of vscode.workspace.textDocuments) {
        if (!named.has(document.uri.toString()) || now < (muted.get(document) ?? 0)) continue;
        const isSoon = now - (changedAt.get(document) ?? 0) < SOON_MS;
        heard.set(document, {
          version: document.version,
          at: now,
          settledAt: now + (isSoon ? SETTLE_SOON_MS : SETTLE_MS),
        });
      }
    }),
  );
}

/** Lends a document errors, which nobody is told of. */
export function lend(document: vscode.TextDocument, errors: readonly vscode.Diagnostic[]): vscode.Disposable {
  const lent = vscode.languages.createDiagnosticCollection('prism');
  muted.set(document, Number.POSITIVE_INFINITY);
  lent.set(document.uri, errors);
  return new vscode.Disposable(() => {
    lent.dispose();
    muted.set(document, Date.now() + MUTED_MS);
  });
}

/**
 * How many texts ago something was last heard of a document: 0 if it was of the text as it is; `undefined` if it never
 * was.
 */
export function ageOf(document: vscode.TextDocument): number | undefined {
  const last = heard.get(document);
  return last && document.version - last.version;
}

/** When what was heard of a document's text as it is counts; `undefined` if nothing was. */
export function settledAt(document: vscode.TextDocument): number | undefined {
  const last = heard.get(document);
  return last?.version === document.version ? last.settledAt : undefined;
}

/**
 * Whether this text was waited for before, and nobody has said anything of it. One that has got a tab since may be
 * looked at.
 */
export function isSilent(document: vscode.TextDocument): boolean {
  return silent.get(document) === document.version && settledAt(document) === undefined && !hasTab(document);
}

/** Waits until something was heard of a document's text as it is, and nothing more comes; or until `until`. */
export async function untilHeard(
  document: vscode.TextDocument,
  until: number,
  stop: vscode.CancellationToken,
): Promise<void> {
  for (const began = Date.now(); ;) {
    const now = Date.now();
    const quietAt = settledAt(document) ?? Number.POSITIVE_INFINITY;
    if (now >= quietAt || stop.isCancellationRequested || document.isClosed) return;
    if (now >= until) {
      if (quietAt === Number.POSITIVE_INFINITY && now - began >= PATIENCE_MS) silent.set(document, document.version);
      return;
    }
    await change(Math.min(quietAt, until) - now, stop);
  }
}

/** Waits until something changes that an answer may depend on, or for some time. */
function change(milliseconds: number, stop: vscode.CancellationToken): Promise<void> {
  return new Promise((done) => {
    const listeners: vscode.Disposable[] = [];
    const end = (): void => {
      clearTimeout(timer);
      for (const listener of listeners) listener.dispose();
      // After the listener that notes what was heard.
      setImmediate(done);
    };
    const timer = setTimeout(end, Math.max(1, milliseconds));
    listeners.push(
      vscode.languages.onDidChangeDiagnostics(end),
      vscode.workspace.onDidChangeTextDocument(end),
      vscode.workspace.onDidCloseTextDocument(end),
      stop.onCancellationRequested(end),
    );
  });
}
