// What the editor's languages have found: `errors_detected`, with the version that it is about. Symbols and completions
// the editor does not tell of by itself, and who finds a fault is not told apart (`lint_results`), so nothing is said
// of these.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { ageOf, listen, settledAt } from '../language/heard';
import { hasTab } from '../language/tab';
import { diagnose, isItsOwn, isTypeScript } from '../language/typescript';

/**
 * How long errors of a file are gathered before they are told, and how long a text must rest before its errors are
 * asked for.
 */
const GATHER_MS = 200;
const REST_MS = 400;

/**
 * Files whose errors wait to be told, and texts that wait to be asked about. Further ones are passed over: their next
 * change tells.
 */
const MAX_WAITING = 200;

/** Files that are not open and have errors. Of further ones it is not told when they have none any more. */
const MAX_FAULTY = 1_000;

/** Texts whose errors are asked for at the same time. */
const MAX_ASKED = 2;

export function watchAnalysis(desk: Desk): vscode.Disposable {
  // First: the others go by what it notes.
  const listening = listen();
  const told = new Told(desk);
  return vscode.Disposable.from(listening, told, new Asked(desk, told));
}

interface Count {
  readonly version: number | null;
  readonly errors: number;
  readonly warnings: number;
}

/** Tells of files whose errors have changed. */
class Told implements vscode.Disposable {
  private readonly waiting = new Map<string, vscode.Uri>();
  private readonly subscription: vscode.Disposable;
  /** What was last told of open texts. */
  private readonly last = new WeakMap<vscode.TextDocument, Count>();
  /** Files that are not open and were told to have errors. */
  private readonly faulty = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly desk: Desk) {
    this.subscription = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
      for (const uri of uris) {
        if (uri.scheme === 'file' && this.waiting.size < MAX_WAITING) this.waiting.set(uri.toString(), uri);
      }
      if (this.waiting.size > 0) this.timer ??= setTimeout(() => this.tellAll(), GATHER_MS);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
  }

  /** Tells of one text, unless the same was told of it before. */
  tell(document: vscode.TextDocument, diagnostics: readonly vscode.Diagnostic[]): void {
    const text = this.desk.texts.of(document);
    if (!text) return;
    const count = counted(diagnostics, text.version);
    const last = this.last.get(document);
    if (last && last.version === count.version && last.errors === count.errors && last.warnings === count.warnings)
      return;
    // The first word of a text that has none is no news to anybody.
    if (!last && count.errors + count.warnings === 0) return;
    this.last.set(document, count);
    this.desk.voice.tell('errors_detected', text.path, { ...count });
  }

  /** Tells of all that count by now; the others wait. */
  private tellAll(): void {
    this.timer = undefined;
    const open = new Map(vscode.workspace.textDocuments.map((document) => [document.uri.toString(), document]));
    for (const [key, uri] of [...this.waiting]) {
      const document = open.get(key);
      // Of what is in no tab TypeScript's extension tells nothing; the server is asked instead.
      const isAsked = document && isTypeScript(document) && !hasTab(document);
      // A text that has changed since is told of when it is heard of again.
      const isPast = document && ageOf(document) !== 0;
      if (document && !isAsked && !isPast && (settledAt(document) ?? 0) > Date.now()) continue;
      this.waiting.delete(key);
      if (isAsked || isPast) continue;
      const diagnostics = vscode.languages.getDiagnostics(uri);
      const path = this.desk.roots.path(uri);
      if (document) this.tell(document, diagnostics);
      else if (path !== undefined) this.tellClosed(path, counted(diagnostics, null));
    }
    if (this.waiting.size > 0) this.timer = setTimeout(() => this.tellAll(), GATHER_MS);
  }

  private tellClosed(path: string, count: Count): void {
    const hasAny = count.errors + count.warnings > 0;
    if (!hasAny && !this.faulty.delete(path)) return;
    if (hasAny && this.faulty.size < MAX_FAULTY) this.faulty.add(path);
    this.desk.voice.tell('errors_detected', path, { ...count });
  }
}

/** Asks TypeScript's server about texts that agents change and that are in no tab. */
class Asked implements vscode.Disposable {
  private readonly resting = new Map<vscode.TextDocument, NodeJS.Timeout>();
  private readonly subscriptions: vscode.Disposable;
  private readonly stop = new vscode.CancellationTokenSource();
  private asking = 0;

  constructor(
    desk: Desk,
    private readonly told: Told,
  ) {
    this.subscriptions = vscode.Disposable.from(
      desk.texts.onChange(({ text, by }) => {
        if (by !== undefined && isTypeScript(text.document)) this.rest(text.document);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => this.forget(document)),
    );
  }

  dispose(): void {
    this.stop.cancel();
    this.stop.dispose();
    for (const timer of this.resting.values()) clearTimeout(timer);
    this.subscriptions.dispose();
  }

  private rest(document: vscode.TextDocument): void {
    this.forget(document);
    if (this.resting.size >= MAX_WAITING) return;
    this.resting.set(
      document,
      setTimeout(() => void this.ask(document), REST_MS),
    );
  }

  private forget(document: vscode.TextDocument): void {
    clearTimeout(this.resting.get(document));
    this.resting.delete(document);
  }

  private async ask(document: vscode.TextDocument): Promise<void> {
    this.resting.delete(document);
    if (document.isClosed || this.stop.token.isCancellationRequested || hasTab(document)) return;
    if (this.asking >= MAX_ASKED) return this.rest(document);
    this.asking += 1;
    try {
      const before = document.version;
      const own = await diagnose(document, this.stop.token);
      if (!own || document.isClosed || document.version !== before) return;
      const others = vscode.languages.getDiagnostics(document.uri).filter((one) => !isItsOwn(one));
      this.told.tell(document, [...own, ...others]);
    } finally {
      this.asking -= 1;
    }
  }
}

function counted(diagnostics: readonly vscode.Diagnostic[], version: number | null): Count {
  const count = (severity: vscode.DiagnosticSeverity): number =>
    diagnostics.filter((one) => one.severity === severity).length;
  return {
    version,
    errors: count(vscode.DiagnosticSeverity.Error),
    warnings: count(vscode.DiagnosticSeverity.Warning),
  };
}
