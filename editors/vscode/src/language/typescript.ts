// TypeScript's server, asked directly. The extension that runs it tells errors only of files that are shown in a tab,
// and says nothing at all of a file that has none, so from outside "no errors" and "not looked at yet" are the same.
// Its command `typescript.tsserverRequest` lets other extensions ask the server itself: the answer is about the text as
// it is at that moment.

import * as vscode from 'vscode';

const LANGUAGES: ReadonlySet<string> = new Set(['typescript', 'typescriptreact', 'javascript', 'javascriptreact']);
const EXTENSION = 'vscode.typescript-language-features';
const COMMAND = 'typescript.tsserverRequest';

/** A place as the server counts: from one. */
interface Location {
  readonly line: number;
  readonly offset: number;
}

interface ServerDiagnostic {
  readonly start: Location;
  readonly end: Location;
  readonly text: string;
  readonly code?: number;
  readonly category: string;
  readonly source?: string;
  readonly reportsUnnecessary?: object;
}

interface Response {
  readonly type?: string;
  readonly body?: readonly ServerDiagnostic[];
}

/** Documents whose project the server has loaded once: its other answers are whole from then on. */
const loaded = new WeakSet<vscode.TextDocument>();

export function isTypeScript(document: vscode.TextDocument): boolean {
  return LANGUAGES.has(document.languageId) && vscode.extensions.getExtension(EXTENSION) !== undefined;
}

/** Waits until the server has loaded the project of a document. Until then it would answer from single files. */
export async function load(document: vscode.TextDocument, stop: vscode.CancellationToken): Promise<void> {
  if (loaded.has(document)) return;
  await ask('semanticDiagnosticsSync', document, stop);
}

/** Returns all that the server has to say of a document as it is now; `undefined` if it cannot be asked. */
export async function diagnose(
  document: vscode.TextDocument,
  stop: vscode.CancellationToken,
): Promise<vscode.Diagnostic[] | undefined> {
  const kinds = ['syntacticDiagnosticsSync', 'semanticDiagnosticsSync', 'suggestionDiagnosticsSync'];
  const answers = await Promise.all(kinds.map((kind) => ask(kind, document, stop)));
  const usual = document.languageId.startsWith('typescript') ? 'ts' : 'js';
  const found: vscode.Diagnostic[] = [];
  for (const answer of answers) {
    if (!answer) return undefined;
    for (const one of answer) found.push(diagnosticOf(one, usual));
  }
  return found;
}

/** Whether a diagnostic of the editor's is one that the server itself would tell. */
export function isItsOwn(diagnostic: vscode.Diagnostic): boolean {
  return diagnostic.source === 'ts' || diagnostic.source === 'js';
}

async function ask(
  request: string,
  document: vscode.TextDocument,
  stop: vscode.CancellationToken,
): Promise<readonly ServerDiagnostic[] | undefined> {
  try {
    await vscode.extensions.getExtension(EXTENSION)?.activate();
    const file = document.uri;
    const response = await vscode.commands.executeCommand<Response | undefined>(
      COMMAND,
      request,
      { file },
      undefined,
      stop,
    );
    if (response?.type !== 'response' || !Array.isArray(response.body)) return undefined;
    if (request === 'semanticDiagnosticsSync') loaded.add(document);
    return response.body;
  } catch {
    // The server was lost or does not know the file: who asks goes by what the editor shows instead.
    return undefined;
  }
}

function diagnosticOf(one: ServerDiagnostic, usual: string): vscode.Diagnostic {
  const place = ({ line, offset }: Location): vscode.Position =>
    new vscode.Position(Math.max(0, line - 1), Math.max(0, offset - 1));
  const diagnostic = new vscode.Diagnostic(
    new vscode.Range(place(one.start), place(one.end)),
    one.text,
    severityOf(one.category),
  );
  diagnostic.source = one.source ?? usual;
  if (one.code !== undefined) diagnostic.code = one.code;
  return diagnostic;
}

function severityOf(category: string): vscode.DiagnosticSeverity {
  switch (category) {
    case 'warning':
      return vscode.DiagnosticSeverity.Warning;
    case 'suggestion':
      return vscode.DiagnosticSeverity.Hint;
    case 'message':
      return vscode.DiagnosticSeverity.Information;
    default:
      return vscode.DiagnosticSeverity.Error;
  }
}
