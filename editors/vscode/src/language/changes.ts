// Edits that an extension proposes, as changes of texts: all of them or none. They are about texts as they were when it
// was asked; if one of these has changed since, or lies outside of the window's folders, nothing is done.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { digestOf } from '../digest';
import { Refusal } from '../refusal';
import { stale, type Text } from '../texts';
import { overlap, unified } from '../unified';
import type { Call } from '../verbs';

/** What is to become of one text. */
export interface Planned {
  readonly text: Text;
  readonly edits: readonly vscode.TextEdit[];
}

/** The versions of all open files, by URI. */
export type Versions = ReadonlyMap<string, number>;

/** Files of one change, and edits in all. More is refused: nobody could look at it. */
const MAX_FILES = 200;
const MAX_EDITS = 20_000;

/** Of a difference so much is told, in whole lines. */
const MAX_DIFF = 1 << 20;

/** Kinds of entries of a WorkspaceEdit, of which the API only shows the second. */
const FILE_ENTRY = 1;
const TEXT_ENTRY = 2;

interface Entry {
  readonly _type: number;
  readonly from?: vscode.Uri;
  readonly to?: vscode.Uri;
}

/** Notes the texts that are open, before somebody is asked for edits of them. */
export function versionsNow(desk: Desk): Versions {
  const versions = new Map<string, number>();
  for (const document of vscode.workspace.textDocuments) {
    const text = desk.texts.of(document);
    if (text) versions.set(document.uri.toString(), text.version);
  }
  return versions;
}

/** Returns what the edits mean, by path. Refused if they mean anything but edits of texts, or not these texts. */
export async function planned(call: Call, edit: vscode.WorkspaceEdit, before: Versions): Promise<Planned[]> {
  const { desk } = call;
  refuseOthers(edit);
  const wanted = edit.entries().filter(([, edits]) => edits.length > 0);
  const count = wanted.reduce((sum, [, edits]) => sum + edits.length, 0);
  if (wanted.length > MAX_FILES || count > MAX_EDITS) {
    const most = `at most ${MAX_EDITS} in ${MAX_FILES} are made`;
    throw new Refusal('too_large', `the change would make ${count} edits in ${wanted.length} files; ${most}`);
  }
  const plan: Planned[] = [];
  for (const [uri, edits] of wanted) {
    const name = uri.scheme === 'file' ? uri.fsPath : uri.toString();
    const path = desk.roots.path(uri);
    if (path === undefined || !call.mayChange(path)) {
      const where = `${JSON.stringify(name)}, which is in none of the granted folders`;
      throw new Refusal('outside_root', `the change would also touch ${where}; nothing was changed`);
    }
    const text = await desk.texts.open(uri);
    const known = before.get(text.uri.toString());
    // Of a file that was not open, who proposed it has read the file itself, and so must we have.
    if (known === undefined ? text.isDirty : known !== text.version) throw stale(text);
    const { document } = text;
    // Beyond the last line is the end, as servers say "all of it".
    const inside = edits.map((one) => new vscode.TextEdit(document.validateRange(one.range), one.newText));
    if (overlap(inside.map((one) => offsetsOf(text, one))))
      throw new Refusal('failed', `the edits of ${JSON.stringify(name)} overlap; nothing was changed`);
    plan.push({ text, edits: inside.filter((one) => document.getText(one.range) !== one.newText) });
  }
  return plan.filter(({ edits }) => edits.length > 0).sort((a, b) => (a.text.path < b.text.path ? -1 : 1));
}

/** Says what would be changed, and changes nothing. */
export function previewed(plan: readonly Planned[]): { files: object[]; diff: string; is_preview: true } {
  const files = plan.map(({ text, edits }) => ({ path: text.path, version: text.version, edits: edits.length }));
  return { files, diff: cut(differenceOf(plan)), is_preview: true };
}

/** Makes the changes, and says what became of each file. */
export async function made(call: Call, plan: readonly Planned[], reason: string): Promise<object[]> {
  if (plan.length === 0) return [];
  const changes = new Map(plan.map(({ text, edits }) => [text.uri, { version: text.version, edits }]));
  const texts = await call.desk.texts.apply(changes, call.session, reason);
  return texts.map((text, i) => ({
    path: text.path,
    version: text.version,
    digest: digestOf(text.document.getText()),
    is_dirty: text.isDirty,
    edits: plan[i]?.edits.length ?? 0,
  }));
}

/** The difference that a plan makes, as `diff -u` has it. */
export function differenceOf(plan: readonly Planned[]): string {
  return plan
    .map(({ text, edits }) =>
      unified(
        text.path,
        text.document.getText(),
        edits.map((one) => offsetsOf(text, one)),
      ),
    )
    .join('');
}

/** As much of a difference as is told. */
export function cut(difference: string): string {
  if (difference.length <= MAX_DIFF) return difference;
  return difference.slice(0, difference.lastIndexOf('\n', MAX_DIFF) + 1);
}

function offsetsOf({ document }: Text, edit: vscode.TextEdit): { start: number; end: number; newText: string } {
  const [start, end] = [document.offsetAt(edit.range.start), document.offsetAt(edit.range.end)];
  return { start, end, newText: edit.newText };
}

/** Refuses what is no edit of a text. The API does not show it, but the object has it. */
function refuseOthers(edit: vscode.WorkspaceEdit): void {
  const { _allEntries: list } = edit as unknown as { _allEntries?: () => readonly Entry[] };
  for (const entry of list?.call(edit) ?? []) {
    if (entry._type === FILE_ENTRY) {
      const kind = !entry.from ? 'create' : entry.to ? 'rename' : 'delete';
      const instead = 'do that with create_file, rename_file or delete_file';
      throw new Refusal(
        'unsupported',
        `the change would also ${kind} a file, which is not done along with edits; ${instead}`,
      );
    }
    if (entry._type !== TEXT_ENTRY) {
      throw new Refusal('unsupported', 'the change would insert a template or change a notebook; nothing was changed');
    }
  }
}
