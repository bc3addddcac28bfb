// apply_quick_fix: what extensions offer to change at a place. Only edits are made; what would run a command is
// refused, because nobody can see beforehand what it does.

import * as vscode from 'vscode';
import { made, planned, previewed, versionsNow } from '../../language/changes';
import { isSilent, lend, untilHeard } from '../../language/heard';
import { pause, Site } from '../../language/site';
import { nobody, speakersOf } from '../../language/speakers';
import { diagnose, isTypeScript } from '../../language/typescript';
import type { Span } from '../../place';
import { Refusal, wrong } from '../../refusal';
import type { Call } from '../../verbs';

/** Fixes in one answer, and those that are worked out to find one of them. */
const MAX_FIXES = 200;

/** How long is waited for errors of the text as it is: there are fixes only for those that are known. */
const ERRORS_WITHIN_MS = 3_000;
const ASK_AGAIN_MS = 200;

type Action = vscode.CodeAction | vscode.Command;

export async function apply_quick_fix(call: Call): Promise<object> {
  const path = call.args.text('path');
  const span = call.args.range('range');
  const title = call.args.maybeText('title');
  const version = call.args.number('version', 0, Number.MAX_SAFE_INTEGER);
  const isPreview = call.args.flag('preview');
  call.args.done();
  if (!span) throw wrong('`range` is missing: {start, end}');
  const site = await Site.open(call, path, version);
  const range = site.span(span);
  const before = versionsNow(call.desk);
  if (title === undefined) {
    const fixes = await offered(site, range, 0);
    return { fixes: fixes.slice(0, MAX_FIXES).map(told), is_complete: fixes.length <= MAX_FIXES };
  }
  const { edit, leaves } = await editOf(site, range, title);
  const plan = await planned(call, edit, before);
  const left = leaves === undefined ? {} : { command_not_run: leaves };
  if (isPreview) return { ...previewed(plan), ...left };
  return { files: await made(call, plan, 'quick_fix'), is_preview: false, ...left };
}

/** Asks what is offered; the first `resolved` of them with all that belongs to them. */
async function offered(site: Site, range: vscode.Range, resolved: number): Promise<Action[]> {
  const { document, call } = site;
  await site.ready();
  const until = Date.now() + ERRORS_WITHIN_MS;
  const lent = await lentErrors(site, range, until);
  try {
    for (;;) {
      const command = 'vscode.executeCodeActionProvider';
      const all =
        (await vscode.commands.executeCommand<Action[] | undefined>(
          command,
          document.uri,
          range,
          undefined,
          resolved,
        )) ?? [];
      if (all.length === 0 && speakersOf(site.language).length === 0) throw nobody(site.language, 'offers quick fixes');
      // Right after a change of a text in a tab TypeScript's extension offers no fixes: it waits for errors that are on
      // their way.
      const isEarly = isTypeScript(document) && lent.hasErrors && !all.some(isFix);
      if (!isEarly || Date.now() >= until || call.stop.isCancellationRequested) return all;
      await pause(ASK_AGAIN_MS, call.stop);
    }
  } finally {
    lent.dispose();
  }
}

/**
 * Has the errors of a text known where fixes are looked for. Of files that are in no tab TypeScript's extension keeps
 * none, so it is lent those that its server tells for as long as the question takes; as hints, which the person is not
 * shown.
 */
async function lentErrors(
  site: Site,
  range: vscode.Range,
  until: number,
): Promise<{ hasErrors: boolean; dispose(): void }> {
  const { document, call } = site;
  const { uri } = document;
  if (!isTypeScript(document)) {
    const isServed = speakersOf(site.language).length > 0 && !isSilent(document);
    if (isServed && vscode.languages.getDiagnostics(uri).length === 0) await untilHeard(document, until, call.stop);
    return { hasErrors: false, dispose: () => undefined };
  }
  const found = ((await diagnose(document, call.stop)) ?? []).filter((error) => error.range.intersection(range));
  const hasErrors = found.some((error) => error.severity === vscode.DiagnosticSeverity.Error);
  const shown = vscode.languages.getDiagnostics(uri);
  const isShown = (error: vscode.Diagnostic): boolean =>
    shown.some((one) => one.code === error.code && one.range.isEqual(error.range));
  const missing = found.filter((error) => !isShown(error));
  for (const error of missing) error.severity = vscode.DiagnosticSeverity.Hint;
  const lent = missing.length > 0 ? lend(document, missing) : undefined;
  return { hasErrors, dispose: () => void lent?.dispose() };
}

function isFix(action: Action): boolean {
  return !isCommand(action) && action.kind !== undefined && vscode.CodeActionKind.QuickFix.contains(action.kind);
}

function isCommand(action: Action): action is vscode.Command {
  return typeof action.command === 'string';
}

function told(action: Action): object {
  if (isCommand(action)) return { title: action.title, kind: null, is_preferred: false };
  return { title: action.title, kind: action.kind?.value ?? null, is_preferred: action.isPreferred ?? false };
}

/** The edits of a fix, and the command that would be run after them and is not. */
interface Fix {
  readonly edit: vscode.WorkspaceEdit;
  readonly leaves: string | undefined;
}

async function editOf(site: Site, range: vscode.Range, title: string): Promise<Fix> {
  const first = await offered(site, range, 0);
  const at = first.findIndex((action) => action.title === title);
  if (at < 0 || at >= MAX_FIXES) {
    const titles = first.slice(0, 10).map((action) => JSON.stringify(action.title));
    const others = titles.length === 0 ? 'nothing is offered' : `offered are ${titles.join(', ')}`;
    throw new Refusal('not_found', `no quick fix ${JSON.stringify(title)} is offered there by now; ${others}`);
  }
  const fix =
    fixIn(site, first[at]) ??
    fixIn(
      site,
      (await offered(site, range, at + 1)).find((action) => action.title === title),
    );
  if (fix) return fix;
  const why = 'runs a command of an extension; only fixes that are edits can be applied';
  throw new Refusal('unsupported', `the quick fix ${JSON.stringify(title)} ${why}`);
}

function fixIn(site: Site, action: Action | undefined): Fix | undefined {
  if (!action) return undefined;
  const edit = isCommand(action) ? editBehind(site, action) : action.edit;
  if (!edit || edit.size === 0) return undefined;
  const leaves = isCommand(action) ? undefined : action.command?.command;
  // TypeScript's own only keep its books.
  return { edit, leaves: leaves?.startsWith('_typescript.') ? undefined : leaves };
}

/**
 * The edits that a command is known to carry along, all of them and nothing else: those of the editor's own style
 * sheets.
 */
function editBehind(
  { document }: Site,
  { command, arguments: args }: vscode.Command,
): vscode.WorkspaceEdit | undefined {
  if (command !== '_css.applyCodeAction' || !Array.isArray(args)) return undefined;
  const [uri, version, edits] = args as [unknown, unknown, readonly { range: Span; newText: string }[]];
  if (uri !== document.uri.toString() || version !== document.version || !Array.isArray(edits)) return undefined;
  const edit = new vscode.WorkspaceEdit();
  for (const { range, newText } of edits as readonly { range: Span; newText: string }[]) {
    const { start, end } = range;
    edit.replace(document.uri, new vscode.Range(start.line, start.character, end.line, end.character), newText);
  }
  return edit;
}
