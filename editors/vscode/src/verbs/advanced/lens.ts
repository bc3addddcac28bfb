// get_code_lens: what the editor shows above the code. The commands behind it are only named: nothing here runs them.

import type * as vscode from 'vscode';
import { Site } from '../../language/site';
import { toldSpan } from '../../place';
import type { Call } from '../../verbs';

/**
 * Lenses in one answer: their words have to be asked for one by one. Of more the answer says that it is not complete.
 */
const MAX_LENSES = 100;

export async function get_code_lens(call: Call): Promise<object> {
  const path = call.args.text('path');
  call.args.done();
  const site = await Site.open(call, path);
  const args = [site.document.uri, MAX_LENSES + 1];
  const isEmpty = (lenses: readonly unknown[] | undefined): boolean => !lenses || lenses.length === 0;
  const found =
    (await site.ask<vscode.CodeLens[]>('shows code lenses', 'vscode.executeCodeLensProvider', args, isEmpty)) ?? [];
  const lenses = found.slice(0, MAX_LENSES).map(({ range, command }) => ({
    range: toldSpan(range),
    title: command?.title ?? null,
    command: command?.command ?? null,
  }));
  const version = call.desk.texts.of(site.document)?.version ?? site.text.version;
  const isComplete = found.length <= MAX_LENSES && lenses.every(({ command }) => command !== null);
  return { lenses, version, is_complete: isComplete };
}
