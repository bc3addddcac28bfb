// Whether a document is in a tab: some extensions look at no others.

import * as vscode from 'vscode';

export function hasTab({ uri }: vscode.TextDocument): boolean {
  const name = uri.toString();
  const isIts = ({ input }: vscode.Tab): boolean =>
    (input instanceof vscode.TabInputText && input.uri.toString() === name) ||
    (input instanceof vscode.TabInputTextDiff && input.modified.toString() === name);
  return vscode.window.tabGroups.all.some((group) => group.tabs.some(isIts));
}
