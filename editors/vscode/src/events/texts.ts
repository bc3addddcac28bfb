// What happens to open texts, and where the person is in them.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { digestOf } from '../digest';
import type { Mirror } from '../mirror';
import { toldPlace, toldSpan } from '../place';

/**
 * How long after a text became saved or unsaved that is told by itself: mostly it is told with a change, or with
 * saving.
 */
const SETTLED_MS = 50;

export function watchTexts(desk: Desk, mirror: Mirror): vscode.Disposable {
  const { texts, voice, doing } = desk;
  return vscode.Disposable.from(
    texts.onChange((change) => voice.tell('buffer_changed', change.text.path, mirror.changed(change))),
    texts.onDirty((document) => {
      setTimeout(() => {
        const text = texts.of(document);
        const data = text && mirror.dirtied(text);
        if (data) voice.tell('buffer_changed', text.path, data);
      }, SETTLED_MS);
    }),
    texts.onMove(({ opened, closed }) => {
      for (const { path, version } of opened) voice.tell('file_opened', path, { version });
      for (const path of closed) {
        mirror.closed(path);
        voice.tell('file_closed', path, doing.take('file_closed', path));
      }
    }),
    vscode.workspace.onDidSaveTextDocument((document) => {
      const text = texts.of(document);
      if (!text) return;
      mirror.saved(text);
      // A text whose changes are dropped is written as its file was; that is no news.
      if (doing.take('discard', text.path).by !== undefined) return;
      const by = doing.take('file_saved', text.path);
      voice.tell('file_saved', text.path, { version: text.version, digest: digestOf(document.getText()), ...by });
    }),
    watchCursor(desk),
  );
}

function watchCursor({ texts, voice, doing }: Desk): vscode.Disposable {
  return vscode.Disposable.from(
    vscode.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => {
      const path = texts.of(textEditor.document)?.path;
      if (path === undefined) return;
      // What a person did with the keyboard or the mouse is theirs, whatever an agent is doing.
      const isTheirs = kind !== undefined && kind !== vscode.TextEditorSelectionChangeKind.Command;
      const whose = (event: string): { by?: string } => (isTheirs ? {} : doing.take(event, path));
      const by = whose('cursor_moved');
      voice.tellMoving('cursor_moved', path, () => ({ position: toldPlace(textEditor.selection.active), ...by }));
      if (!textEditor.selection.isEmpty || hadSelection.has(textEditor)) {
        const selectedBy = whose('selection_changed');
        voice.tellMoving('selection_changed', path, () => ({ range: toldSpan(textEditor.selection), ...selectedBy }));
      }
      if (textEditor.selection.isEmpty) hadSelection.delete(textEditor);
      else hadSelection.add(textEditor);
    }),
    vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor, visibleRanges }) => {
      const path = texts.of(textEditor.document)?.path;
      const [first, last] = [visibleRanges[0], visibleRanges.at(-1)];
      if (path === undefined || !first || !last) return;
      const by = doing.take('viewport_changed', path);
      const told = { first_line: first.start.line, last_line: last.end.line, ...by };
      voice.tellMoving('viewport_changed', path, () => told);
    }),
  );
}

/** Editors in which something was selected when last told. */
const hadSelection = new WeakSet<vscode.TextEditor>();
