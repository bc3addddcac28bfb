// Files as a whole: open, create, write, delete, rename.

import { access, constants, lstat, readdir } from 'node:fs/promises';
import * as nodePath from 'node:path';
import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { asText, digestOf, isSameText } from '../digest';
import { checkSize, onDisk } from '../disk';
import { lineCount } from '../place';
import { Refusal, wrong } from '../refusal';
import { languageOf, type Text } from '../texts';
import type { Call, Verb } from '../verbs';

const MOST_LINES = 0xffff_ffff;

async function openFile({ args, desk }: Call): Promise<object> {
  const path = args.text('path');
  const offset = args.number('offset', 0, MOST_LINES) ?? 0;
  const limit = args.number('limit', 1, MOST_LINES);
  args.done();
  const looked = await desk.texts.look(await desk.roots.file(path));
  if ('document' in looked) return opened(looked, offset, limit);
  const { bytes } = looked;
  return {
    path: looked.path,
    bytes: bytes.length,
    digest: digestOf(bytes),
    encoding: 'base64',
    content: Buffer.from(bytes).toString('base64'),
    version: null,
    is_dirty: false,
    language: null,
  };
}

function opened(text: Text, offset: number, limit: number | undefined): object {
  const content = text.document.getText();
  const lines = lineCount(content);
  const answer = {
    path: text.path,
    bytes: Buffer.byteLength(content),
    digest: digestOf(content),
    encoding: 'utf-8',
    lines,
    version: text.version,
    is_dirty: text.isDirty,
    language: languageOf(text),
  };
  if (offset === 0 && limit === undefined) return { ...answer, content };
  const all = content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const end = limit === undefined ? lines : Math.min(lines, offset + limit);
  return { ...answer, content: all.slice(offset, end).join(''), offset, is_partial: offset > 0 || end < lines };
}

async function createFile({ args, desk }: Call): Promise<object> {
  const written = args.text('path');
  const content = args.content('content');
  const makesParents = args.flag('parents');
  const kind = args.choice('kind', ['file', 'folder']);
  args.done();
  if (kind === 'folder' && content) throw wrong('a folder has no `content`');
  const path = await desk.roots.realName(written);
  if (!makesParents && !(await found(nodePath.dirname(path)))) {
    throw new Refusal('not_found', `${JSON.stringify(written)}: the folder for it is not there; \`parents\` makes it`);
  }
  if (await found(path)) {
    throw wrong(`${JSON.stringify(written)}: it is already there; write_file and edit_buffer change what is there`);
  }
  const uri = desk.roots.uri(path);
  if (kind === 'folder') {
    await vscode.workspace.fs.createDirectory(uri);
    return { path };
  }
  const bytes = content ?? new Uint8Array();
  checkSize(bytes.length);
  const edit = new vscode.WorkspaceEdit();
  edit.createFile(uri, { contents: bytes, overwrite: false });
  await made(edit, async () => {
    if (await found(path))
      throw new Refusal('changed', `${JSON.stringify(written)}: somebody else has made it meanwhile`);
  });
  return { path, bytes: bytes.length, digest: digestOf(bytes) };
}

async function writeFile({ args, desk, session }: Call): Promise<object> {
  const written = args.text('path');
  const content = args.content('content');
  if (!content) throw wrong('`content` is missing: a string');
  const madeFor = args.maybeText('digest');
  args.done();
  checkSize(content.length);
  const path = await desk.roots.real(written);
  const there = await onDisk(path);
  if (!there) throw new Refusal('not_found', `there is no file ${JSON.stringify(written)}`);
  await access(path, constants.W_OK).catch(() => {
    throw new Refusal('failed', `${JSON.stringify(written)}: it is read-only`);
  });
  refuseDirty(desk, path);
  if (madeFor !== undefined && madeFor !== digestOf(there) && madeFor !== openedDigest(desk, path, there)) {
    const why = 'it is not the file that the change was made for; look again, then try again';
    throw new Refusal('changed', `${JSON.stringify(written)}: ${why}`);
  }
  desk.texts.follows(path, content, session);
  await vscode.workspace.fs.writeFile(desk.roots.uri(path), content);
  await desk.texts.caughtUp(path);
  return { path, bytes: content.length, digest: digestOf(content) };
}

/**
 * The digest of a file as its text was told: an editor has one kind of line breaks in it, and no mark at its beginning.
 */
function openedDigest(desk: Desk, path: string, there: Uint8Array): string | undefined {
  const text = desk.texts.at(path)?.document.getText();
  const now = asText(there);
  return text !== undefined && now !== undefined && isSameText(text, now) ? digestOf(text) : undefined;
}

async function deleteFile({ args, desk }: Call): Promise<object> {
  const written = args.text('path');
  args.done();
  const path = await desk.roots.realName(written);
  const what = await existing(written, path);
  if (desk.roots.all.includes(path)) throw wrong(`${JSON.stringify(written)}: it is a folder of this window itself`);
  if (what === 'folder' && (await readdir(path)).length > 0) {
    throw wrong(`${JSON.stringify(written)}: the folder is not empty; delete what is in it first`);
  }
  refuseDirty(desk, path);
  const edit = new vscode.WorkspaceEdit();
  edit.deleteFile(desk.roots.uri(path), { recursive: false, ignoreIfNotExists: false });
  await made(edit, async () => {
    if (!(await found(path)))
      throw new Refusal('changed', `${JSON.stringify(written)}: somebody else has removed it meanwhile`);
  });
  desk.texts.close(path);
  return { path, what };
}

async function renameFile({ args, desk }: Call): Promise<object> {
  const written = args.text('path');
  const newWritten = args.text('new_path');
  const overwrite = args.flag('overwrite');
  args.done();
  const path = await desk.roots.realName(written);
  const newPath = await desk.roots.realName(newWritten);
  await existing(written, path);
  if (!(await found(nodePath.dirname(newPath)))) {
    throw new Refusal('not_found', `${JSON.stringify(newWritten)}: the folder for it is not there`);
  }
  if (!overwrite && (await found(newPath))) {
    throw wrong(`${JSON.stringify(newWritten)}: it is already there; \`overwrite\` replaces it`);
  }
  // What the new name held is lost, and with it no text that somebody has not saved.
  refuseDirty(desk, newPath);
  const edit = new vscode.WorkspaceEdit();
  edit.renameFile(desk.roots.uri(path), desk.roots.uri(newPath), { overwrite });
  await made(edit, async () => {
    if (!(await found(path))) throw new Refusal('changed', `${JSON.stringify(written)}: it has changed meanwhile`);
    if (!overwrite && (await found(newPath))) {
      throw new Refusal('changed', `${JSON.stringify(newWritten)}: somebody else has made it meanwhile`);
    }
  });
  return { path, new_path: newPath };
}

/** Has the editor do something to files, so that what is open goes along. If it does not, looks for the reason. */
async function made(edit: vscode.WorkspaceEdit, why: () => Promise<void>): Promise<void> {
  if (await vscode.workspace.applyEdit(edit)) return;
  await why();
  throw new Refusal('failed', 'the editor did not do it, and does not say why');
}

/** Refuses if there is unsaved text at or beneath a path that would be lost. */
function refuseDirty(desk: Desk, path: string): void {
  const [dirty] = desk.texts.unsaved(path);
  if (dirty === undefined) return;
  const how = 'save_buffer writes them, close_buffer with `discard` drops them';
  throw new Refusal('changed', `${JSON.stringify(dirty)} has unsaved changes; ${how}`);
}

/** What a name is; a link is itself. `undefined` if it is not there. */
async function found(path: string): Promise<'file' | 'folder' | 'link' | 'other' | undefined> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return 'link';
    if (stats.isDirectory()) return 'folder';
    return stats.isFile() ? 'file' : 'other';
  } catch {
    return undefined;
  }
}

async function existing(written: string, path: string): Promise<string> {
  const what = await found(path);
  if (what === undefined) throw new Refusal('not_found', `there is no file ${JSON.stringify(written)}`);
  return what;
}

// `search_files` and `watch_file` are not here: they are about the disk, and the built-in editor does them as well
// without a window.
export const files: Record<string, Verb> = {
  open_file: openFile,
  create_file: createFile,
  write_file: writeFile,
  delete_file: deleteFile,
  rename_file: renameFile,
};
