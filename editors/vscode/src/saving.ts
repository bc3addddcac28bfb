// Texts on their way to their files, and the dropping of what is unsaved.

import { access, constants, utimes } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { Desk } from './desk';
import { asText } from './digest';
import { onDisk } from './disk';
import { difference, withBreaks } from './edits';
import { Refusal } from './refusal';
import { stale, type Text } from './texts';

/** How long the editor may take to say that a text is saved. */
const SAVED_WITHIN_MS = 1_000;

/** Saves an unsaved text. What somebody else has written meanwhile is replaced only if that is said. */
export async function save(desk: Desk, text: Text, overwrites: boolean, session: string): Promise<void> {
  const there = await onDisk(text.path);
  // Asked before, the editor does not ask the person: it would show them a conflict that is not theirs.
  if (!overwrites && (await desk.texts.isChangedOnDisk(text))) {
    const why = there
      ? 'somebody else has changed the file; `overwrite` replaces what they wrote'
      : 'somebody else has removed the file; `overwrite` makes it again';
    throw new Refusal('changed', `${JSON.stringify(text.path)}: ${why}`);
  }
  desk.doing.note('file_saved', text.path, session);
  await write(desk, text, there);
}

/**
 * Drops the changes of an unsaved text. The editor can do that only with what it shows as active, and would take the
 * keyboard from the person. So the text is made what its file is, and saved as that; whatever is done to texts as they
 * are saved (formatting, say), the file is in the end what it was.
 */
export async function discard(desk: Desk, text: Text, session: string): Promise<void> {
  const { document, path, uri } = text;
  const there = await onDisk(path);
  const goal = there && asText(there);
  if (goal !== undefined) {
    const edits = (now: Text): ReturnType<typeof difference>[] => {
      if (now.version !== text.version) throw stale(now);
      const content = document.getText();
      const lineBreak = document.eol === vscode.EndOfLine.CRLF ? '\r\n' : '\n';
      const edit = difference(content, withBreaks(goal, lineBreak));
      return edit.start === edit.end && edit.newText === '' ? [] : [edit];
    };
    await desk.texts.edit([{ uri, edits }], session, 'discard');
  }
  const end = desk.doing.note('discard', path, session);
  await write(desk, text, there);
  end();
  if (!there) return vscode.workspace.fs.delete(uri);
  const now = await onDisk(path);
  if (now && Buffer.compare(now, there) === 0) return;
  await vscode.workspace.fs.writeFile(uri, there);
  await desk.texts.caughtUp(path);
}

async function write(desk: Desk, text: Text, there: Uint8Array | undefined): Promise<void> {
  const { document, path } = text;
  if (there) {
    await access(path, constants.W_OK).catch(() => {
      throw new Refusal('failed', `${JSON.stringify(path)}: it is read-only`);
    });
    // The editor refuses to write over a file that is younger than what it has read, and asks the person.
    if (await desk.texts.isChangedOnDisk(text)) await utimes(path, new Date(0), new Date(0));
  }
  const before = document.version;
  await document.save();
  // What `save` returns is not what came of it: saved by somebody else at this moment, it says that it failed.
  await desk.texts.until(() => !document.isDirty, SAVED_WITHIN_MS);
  if (document.isDirty && document.version === before) {
    throw new Refusal('failed', `${JSON.stringify(path)}: the editor did not save it`);
  }
}
