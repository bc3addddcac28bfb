// Where the cursor is in texts, also in those that are not shown at the moment: the editor forgets to say it of them.

import * as vscode from 'vscode';
import { once } from './wait';

/** Texts of which it is remembered. Beyond it the one that was longest not looked at is forgotten. */
const MAX_SPOTS = 256;

export class Spots implements vscode.Disposable {
  private readonly spots = new Map<string, vscode.Selection>();
  private readonly subscriptions: vscode.Disposable;

  constructor() {
    for (const editor of vscode.window.visibleTextEditors) this.note(editor);
    this.subscriptions = vscode.Disposable.from(
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.note(textEditor)),
      vscode.workspace.onDidCloseTextDocument((document) => this.spots.delete(document.uri.toString())),
    );
  }

  dispose(): void {
    this.subscriptions.dispose();
  }

  /** What is selected in a text; nothing, at its beginning, if it was never shown. */
  of(document: vscode.TextDocument): vscode.Selection {
    const active = vscode.window.activeTextEditor;
    const editors = active ? [active, ...vscode.window.visibleTextEditors] : vscode.window.visibleTextEditors;
    const shown = editors.find((editor) => editor.document === document);
    return shown?.selection ?? this.spots.get(document.uri.toString()) ?? new vscode.Selection(0, 0, 0, 0);
  }

  /** Waits until the selection of a text is as it should be, but not for long. */
  async until(
    document: vscode.TextDocument,
    holds: (spot: vscode.Selection) => boolean,
    withinMs: number,
  ): Promise<void> {
    if (holds(this.of(document))) return;
    const event = vscode.window.onDidChangeTextEditorSelection;
    await once(event, ({ textEditor }) => textEditor.document === document && holds(textEditor.selection), withinMs);
  }

  /** Waits until a text is scrolled, but not for long: it may not have to be. */
  async untilViewport(document: vscode.TextDocument, withinMs: number): Promise<void> {
    await once(
      vscode.window.onDidChangeTextEditorVisibleRanges,
      ({ textEditor }) => textEditor.document === document,
      withinMs,
    );
  }

  private note({ document, selection }: vscode.TextEditor): void {
    const key = document.uri.toString();
    this.spots.delete(key);
    this.spots.set(key, selection);
    const [oldest] = this.spots.keys();
    if (this.spots.size > MAX_SPOTS && oldest !== undefined) this.spots.delete(oldest);
  }
}
