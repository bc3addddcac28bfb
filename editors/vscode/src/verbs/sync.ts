// Cursor, selection and viewport of the real window. There is one of each: what an agent sets, the person sees.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { Lines, type Place, toldPlace, toldSpan } from '../place';
import { show } from '../panes';
import { Refusal, wrong } from '../refusal';
import type { Text } from '../texts';
import type { Call, Verb } from '../verbs';

/** Lines of a screen that is not shown yet. */
const SCREEN = 50;
const MOST_LINES = 0xffff_ffff;
/** How long the editor may take to say that something moved. What it does not tell by then is told from here. */
const TOLD_WITHIN_MS = 250;

async function getCursorPos({ args, desk }: Call): Promise<object> {
  const path = args.maybeText('path');
  args.done();
  const text = await lookedAt(desk, path);
  const position = desk.spots.of(text.document).active;
  return { path: text.path, position: toldPlace(position), ui: true };
}

async function setCursorPos({ args, desk, session }: Call): Promise<object> {
  const path = args.text('path');
  const position = args.position('position');
  if (!position) throw wrong('`position` is missing: {line, character}');
  const range = args.range('selection');
  args.done();
  const text = await desk.texts.open(await desk.roots.file(path));
  const lines = new Lines(text.document.getText());
  for (const place of [position, range?.start, range?.end]) {
    const offset = place === undefined ? 0 : lines.offset(place);
    if (typeof offset === 'string') throw wrong(offset);
  }
  const selection = selectionOf(
    lines.nearest(position),
    range && { start: lines.nearest(range.start), end: lines.nearest(range.end) },
  );
  const told = new Map<string, object>([['cursor_moved', { position: toldPlace(selection.active) }]]);
  if (range) told.set('selection_changed', { range: toldSpan(selection) });
  const endings = [...told.keys()].map((event) => desk.doing.note(event, text.path, session));
  await show(text.document, selection);
  await desk.spots.until(text.document, (spot) => spot.isEqual(selection), TOLD_WITHIN_MS);
  // The editor tells of no move to where the cursor is already.
  for (const [i, [event, where]] of [...told].entries()) {
    if (endings[i]?.()) desk.voice.tell(event, text.path, { ...where, by: session });
  }
  return { path: text.path, position: toldPlace(selection.active), ui: true };
}

/**
 * A selection whose cursor is where it was asked to be, as far as that is one of its ends: an editor's cursor always
 * is.
 */
function selectionOf(cursor: Place, range: { start: Place; end: Place } | undefined): vscode.Selection {
  const at = (place: Place): vscode.Position => new vscode.Position(place.line, place.character);
  if (!range) return new vscode.Selection(at(cursor), at(cursor));
  const [start, end] = [at(range.start), at(range.end)];
  return at(cursor).isEqual(start) ? new vscode.Selection(end, start) : new vscode.Selection(start, end);
}

async function getSelection({ args, desk }: Call): Promise<object> {
  const path = args.maybeText('path');
  args.done();
  const text = await lookedAt(desk, path);
  const range = text.document.validateRange(desk.spots.of(text.document));
  return { path: text.path, range: toldSpan(range), text: text.document.getText(range), ui: true };
}

async function syncViewport({ args, desk, session }: Call): Promise<object> {
  const path = args.text('path');
  const first = args.number('first_line', 0, MOST_LINES);
  const last = args.number('last_line', 0, MOST_LINES);
  args.done();
  if (first !== undefined && last !== undefined && first > last) throw wrong('`first_line` comes after `last_line`');
  const text = await desk.texts.open(await desk.roots.file(path));
  const before = visible(text.document);
  const isUntold = desk.doing.note('viewport_changed', text.path, session);
  const editor = before?.editor ?? (await show(text.document));
  if (first !== undefined || last !== undefined) {
    const end = text.document.lineCount - 1;
    const from = Math.min(first ?? Math.max(0, (last ?? 0) - SCREEN + 1), end);
    const to = Math.min(Math.max(last ?? from, from), end);
    editor.revealRange(new vscode.Range(from, 0, to, 0), vscode.TextEditorRevealType.AtTop);
    await desk.spots.untilViewport(text.document, TOLD_WITHIN_MS);
  }
  const now = visible(text.document);
  const lines = { first_line: now?.first ?? 0, last_line: now?.last ?? 0 };
  const isMoved = before?.first !== lines.first_line || before.last !== lines.last_line;
  if (isUntold() && isMoved) desk.voice.tell('viewport_changed', text.path, { ...lines, by: session });
  return { path: text.path, ...lines, ui: true };
}

function visible(
  document: vscode.TextDocument,
): { editor: vscode.TextEditor; first: number; last: number } | undefined {
  const editor = vscode.window.visibleTextEditors.find((one) => one.document === document);
  const [first, last] = [editor?.visibleRanges[0], editor?.visibleRanges.at(-1)];
  return editor && first && last ? { editor, first: first.start.line, last: last.end.line } : undefined;
}

/** The text that is named, or else the one that the person looks at. */
async function lookedAt(desk: Desk, path: string | undefined): Promise<Text> {
  if (path !== undefined) return desk.texts.open(await desk.roots.file(path));
  const document = vscode.window.activeTextEditor?.document;
  const text = document && desk.texts.of(document);
  if (!text) throw new Refusal('not_found', 'no buffer is active; name one by `path`, or switch_buffer');
  return text;
}

export const sync: Record<string, Verb> = {
  get_cursor_pos: getCursorPos,
  set_cursor_pos: setCursorPos,
  get_selection: getSelection,
  sync_viewport: syncViewport,
};
