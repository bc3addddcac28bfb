// refactor_symbol: another name for something, wherever it is used.

import * as vscode from 'vscode';
import { made, planned, previewed, versionsNow } from '../../language/changes';
import { Site } from '../../language/site';
import { nobody, speakersOf } from '../../language/speakers';
import { Refusal, wrong } from '../../refusal';
import type { Call } from '../../verbs';

/** Letters of a name. */
const MAX_NAME = 200;

export async function refactor_symbol(call: Call): Promise<object> {
  const path = call.args.text('path');
  const position = call.args.position('position');
  if (!position) throw wrong('`position` is missing: {line, character}');
  const newName = call.args.text('new_name');
  const version = call.args.number('version', 0, Number.MAX_SAFE_INTEGER);
  const isPreview = call.args.flag('preview');
  call.args.done();
  if (newName.trim() === '' || /\p{Cc}/u.test(newName) || [...newName].length > MAX_NAME) {
    throw wrong(`\`new_name\` must be a name of 1 to ${MAX_NAME} letters`);
  }
  const site = await Site.open(call, path, version);
  const place = site.place(position);
  await site.ready();
  const before = versionsNow(call.desk);
  const plan = await planned(call, await renamed(site, place, newName), before);
  if (plan.length === 0) return { files: [], is_preview: isPreview };
  if (isPreview) return previewed(plan);
  return { files: await made(call, plan, 'rename'), is_preview: false };
}

async function renamed(site: Site, place: vscode.Position, newName: string): Promise<vscode.WorkspaceEdit> {
  const none = 'there is nothing at `position` that could be renamed';
  let edit: vscode.WorkspaceEdit | undefined;
  try {
    const command = 'vscode.executeDocumentRenameProvider';
    edit =
      (await vscode.commands.executeCommand<vscode.WorkspaceEdit | undefined>(
        command,
        site.document.uri,
        place,
        newName,
      )) ?? undefined;
  } catch (error) {
    // It says in the person's language why it is refused; most often that there is nothing.
    throw wrong(`${none}: ${Refusal.of(error).message}`);
  }
  if (edit && edit.size > 0) return edit;
  if (speakersOf(site.language).length === 0) throw nobody(site.language, 'renames symbols');
  throw wrong(none);
}
