// Open texts: list, edit, save, close.

import * as vscode from 'vscode';
import { Args } from '../args';
import { type Asked, askedEdits, MAX_EDITS, MAX_FILES, placed, refuseBlind } from '../asked';
import type { Desk } from '../desk';
import { digestOf } from '../digest';
import type { TextEdit } from '../edits';
import { lineCount } from '../place';
import { Refusal, wrong } from '../refusal';
import { discard, save } from '../saving';
import { languageOf, type Planned, stale, type Text } from '../texts';
import type { Call, Verb } from '../verbs';

async function getBuffers({ args, desk }: Call): Promise<object> {
  args.done();
  const active = vscode.window.activeTextEditor?.document;
  const buffers = await Promise.all(
    desk.texts.all().map(async (text) => {
      const content = text.document.getText();
      return {
        path: text.path,
        version: text.version,
        is_dirty: text.isDirty,
        digest: digestOf(content),
        language: languageOf(text),
        lines: lineCount(content),
        is_changed_on_disk: text.isDirty && (await desk.texts.isChangedOnDisk(text).catch(() => true)),
        is_active: text.document === active,
      };
    }),
  );
  return { buffers, ui: true };
}

// --- Editing ---

async function editBuffer({ args, desk, session, stop }: Call): Promise<object> {
  const files = args.list('files');
  if (files) {
    args.done();
    if (files.length === 0 || files.length > MAX_FILES) {
      throw wrong(`\`files\` must hold 1 to ${MAX_FILES} files, not ${files.length}`);
    }
    const orders: Planned[] = [];
    for (const [i, file] of files.entries()) orders.push(await numbered(i, () => orderOf(file, desk, i, stop)));
    const texts = await desk.texts.edit(orders, session);
    return { files: texts.map((text) => edited(text)) };
  }
  const { path, fits, namesVersion } = readTarget(args, stop);
  const undo = args.number('undo', 1, MAX_EDITS);
  const redo = args.number('redo', 1, MAX_EDITS);
  const edits = askedEdits(args);
  args.done();
  const given = [undo, redo, edits].filter((one) => one !== undefined).length;
  if (given === 0) {
    throw wrong('`edits` is missing: an array of {range, new_text} or {old_text, new_text}; or `undo`, or `redo`');
  }
  if (given > 1) throw wrong('give one of `edits`, `undo` and `redo`');
  const uri = await desk.roots.file(path);
  if (edits) {
    refuseBlind(edits, namesVersion);
    const [text] = await desk.texts.edit([{ uri, edits: planned(edits, fits) }], session);
    return { ...edited(text as Text), edits: edits.length };
  }
  const way = undo === undefined ? 'redo' : 'undo';
  return edited(await desk.texts.retrace(uri, fits, way, undo ?? redo ?? 1, session));
}

async function orderOf(file: unknown, desk: Desk, index: number, stop: vscode.CancellationToken): Promise<Planned> {
  const args = Args.members('files', file);
  const { path, fits, namesVersion } = readTarget(args, stop);
  const edits = askedEdits(args);
  args.done();
  if (!edits) throw wrong('`edits` is missing');
  refuseBlind(edits, namesVersion);
  const plan = planned(edits, fits);
  return { uri: await desk.roots.file(path), edits: (text) => numberedNow(index, () => plan(text)) };
}

/** Which text an edit is for: its path, what refuses another one, and whether its version was said. */
function readTarget(
  args: Args,
  stop: vscode.CancellationToken,
): { path: string; fits: (text: Text) => void; namesVersion: boolean } {
  const path = args.text('path');
  const version = args.number('version', 0, Number.MAX_SAFE_INTEGER);
  const digest = args.maybeText('digest');
  const fits = (text: Text): void => {
    // It may have waited for its turn longer than anybody waits for it.
    if (stop.isCancellationRequested) throw new Refusal('timed_out', 'nobody waits for this edit any more');
    const isStale = version !== undefined && version !== text.version;
    if (isStale || (digest !== undefined && digest !== digestOf(text.document.getText()))) throw stale(text);
  };
  return { path, fits, namesVersion: version !== undefined || digest !== undefined };
}

function planned(edits: readonly Asked[], fits: (text: Text) => void): (text: Text) => TextEdit[] {
  return (text) => {
    fits(text);
    return placed(text.document.getText(), edits);
  };
}

function edited(text: Text): Record<string, unknown> {
  const digest = digestOf(text.document.getText());
  return { path: text.path, version: text.version, digest, is_dirty: text.isDirty };
}

async function numbered<T>(index: number, doing: () => Promise<T>): Promise<T> {
  try {
    return await doing();
  } catch (error) {
    throw numberedRefusal(index, error);
  }
}

function numberedNow<T>(index: number, doing: () => T): T {
  try {
    return doing();
  } catch (error) {
    throw numberedRefusal(index, error);
  }
}

function numberedRefusal(index: number, error: unknown): Refusal {
  const { code, message } = Refusal.of(error);
  return new Refusal(code, `file ${index}: ${message}`);
}

// --- Saving ---

async function saveBuffer({ args, desk, session }: Call): Promise<object> {
  const path = args.maybeText('path');
  const savesAll = args.flag('all');
  const version = args.number('version', 0, Number.MAX_SAFE_INTEGER);
  const overwrites = args.flag('overwrite');
  args.done();
  if (path !== undefined && !savesAll) {
    const text = await desk.texts.open(await desk.roots.file(path));
    if (version !== undefined && version !== text.version) {
      const message = `${JSON.stringify(path)}: version ${version} was to be saved, and it is at ${text.version}`;
      throw new Refusal('changed', message);
    }
    return saved(desk, text, overwrites, session);
  }
  if (path !== undefined || !savesAll || version !== undefined) throw wrong('give `path`, or `all`: true');
  const all: object[] = [];
  for (const text of desk.texts.all().filter((one) => one.isDirty)) {
    all.push(
      await saved(desk, text, overwrites, session).catch((error: unknown) => {
        const { code, message } = Refusal.of(error);
        return { path: text.path, error: { code, message } };
      }),
    );
  }
  return { saved: all };
}

async function saved(desk: Desk, text: Text, overwrites: boolean, session: string): Promise<object> {
  const { document, path } = text;
  if (text.isDirty) await save(desk, text, overwrites, session);
  const version = desk.texts.of(document)?.version ?? text.version;
  const content = document.getText();
  return { path, version, digest: digestOf(content), bytes: Buffer.byteLength(content), is_dirty: document.isDirty };
}

// --- Closing ---

async function closeBuffer({ args, desk, session }: Call): Promise<object> {
  const written = args.text('path');
  const discards = args.flag('discard');
  args.done();
  const path = await desk.roots.real(written);
  const text = desk.texts.at(path);
  if (!text) throw new Refusal('not_found', `${JSON.stringify(written)} is not open`);
  if (text.isDirty && !discards) {
    const why = 'it has unsaved changes; save_buffer writes them, `discard` drops them';
    throw new Refusal('changed', `${JSON.stringify(written)}: ${why}`);
  }
  desk.doing.note('file_closed', path, session);
  if (text.isDirty) await discard(desk, text, session);
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs.filter((tab) => isOf(tab, text.uri)));
  if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true);
  desk.texts.close(path);
  return { path, discarded: text.isDirty };
}

function isOf(tab: vscode.Tab, uri: vscode.Uri): boolean {
  return tab.input instanceof vscode.TabInputText && tab.input.uri.toString() === uri.toString();
}

export const buffers: Record<string, Verb> = {
  get_buffers: getBuffers,
  edit_buffer: editBuffer,
  save_buffer: saveBuffer,
  close_buffer: closeBuffer,
};
