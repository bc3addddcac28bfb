// What a command, a build or git does not see: texts that are open and not saved.

import { realpathSync } from 'node:fs';
import { sep } from 'node:path';
import * as vscode from 'vscode';

export function unsavedBeneath(folder: string): string[] {
  const dirty = vscode.workspace.textDocuments.filter((document) => document.isDirty && document.uri.scheme === 'file');
  return dirty.map((document) => real(document.uri.fsPath)).filter((path) => path.startsWith(folder + sep));
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The file is gone, and its text is still here.
    return path;
  }
}
