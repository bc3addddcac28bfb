// format_code: by whoever formats the language in this editor, as an edit of the text.

import * as vscode from 'vscode';
import { made, planned, versionsNow } from '../../language/changes';
import { Site } from '../../language/site';
import { nobody, speakersOf } from '../../language/speakers';
import { wrong } from '../../refusal';
import type { Call } from '../../verbs';

type Edits = vscode.TextEdit[] | undefined;

export async function format_code(call: Call): Promise<object> {
  const path = call.args.text('path');
  const version = call.args.number('version', 0, Number.MAX_SAFE_INTEGER);
  const span = call.args.range('range');
  const tabSize = call.args.number('tab_size', 1, 16);
  const insertSpaces = call.args.take('insert_spaces');
  call.args.done();
  if (insertSpaces !== undefined && typeof insertSpaces !== 'boolean')
    throw wrong('`insert_spaces` must be true or false');
  const site = await Site.open(call, path, version);
  const range = span && site.span(span);
  const options = optionsFor(site.document, tabSize, insertSpaces);
  await site.ready();
  const before = versionsNow(call.desk);
  const edits = await formatted(site.document, range, options);
  if (!edits) await refuseNobody(site, range, options);
  const edit = new vscode.WorkspaceEdit();
  edit.set(site.document.uri, edits ?? []);
  const plan = await planned(call, edit, before);
  const [file] = await made(call, plan, 'format');
  if (file) return { ...file, is_changed: true };
  return {
    path: site.text.path,
    version: before.get(site.document.uri.toString()) ?? site.text.version,
    edits: 0,
    is_changed: false,
  };
}

/** As the call says, else as the person has it for this file. */
function optionsFor(
  document: vscode.TextDocument,
  tabSize: number | undefined,
  insertSpaces: boolean | undefined,
): vscode.FormattingOptions {
  const usual = vscode.workspace.getConfiguration('editor', document);
  return {
    tabSize: tabSize ?? usual.get<number>('tabSize', 4),
    insertSpaces: insertSpaces ?? usual.get<boolean>('insertSpaces', true),
  };
}

async function formatted(
  document: vscode.TextDocument,
  range: vscode.Range | undefined,
  options: vscode.FormattingOptions,
): Promise<Edits> {
  const { uri } = document;
  const [command, args] = range
    ? ['vscode.executeFormatRangeProvider', [uri, range, options]]
    : ['vscode.executeFormatDocumentProvider', [uri, options]];
  return (await vscode.commands.executeCommand<Edits | null>(command as string, ...(args as unknown[]))) ?? undefined;
}

/**
 * The editor says the same of "nothing to do" and "nobody formats this". Who is there shows when something odd is asked
 * for, or by what extensions say of themselves.
 */
async function refuseNobody(
  site: Site,
  range: vscode.Range | undefined,
  options: vscode.FormattingOptions,
): Promise<void> {
  const odd = { tabSize: options.tabSize === 7 ? 5 : 7, insertSpaces: !options.insertSpaces };
  if (await formatted(site.document, range, odd)) return;
  const isFormatter = ({ packageJSON }: vscode.Extension<unknown>): boolean => {
    const { categories } = packageJSON as { categories?: readonly string[] };
    return categories?.includes('Formatters') ?? false;
  };
  const formatters = vscode.extensions.all.filter(isFormatter);
  if (speakersOf(site.language).length + formatters.length === 0) throw nobody(site.language, 'formats code');
}
