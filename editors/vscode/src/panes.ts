// The groups of editors in the window, each by the number that the editor shows for it. It counts them anew when one
// comes or goes, and has no other name for them.

import * as vscode from 'vscode';
import type { Desk } from './desk';

/** The group with a number. What was at hand before may be an older picture of it. */
export function groupAt(pane: number): vscode.TabGroup | undefined {
  return vscode.window.tabGroups.all.find((group) => group.viewColumn === pane);
}

/** The group that shows a file, the active one first; `undefined` if none does. */
export function groupShowing(uri: vscode.Uri): vscode.TabGroup | undefined {
  const name = uri.toString();
  const shows = (group: vscode.TabGroup): boolean =>
    group.tabs.some(({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === name);
  const { activeTabGroup, all } = vscode.window.tabGroups;
  return shows(activeTabGroup) ? activeTabGroup : all.find(shows);
}

/** The file that a group shows, by its real path. */
export function pathIn(group: vscode.TabGroup, { roots }: Desk): string | undefined {
  const input = group.activeTab?.input;
  return input instanceof vscode.TabInputText ? roots.path(input.uri) : undefined;
}

/** Shows a text to the person, where it is shown already or else in the active group. */
export async function show(document: vscode.TextDocument, selection?: vscode.Selection): Promise<vscode.TextEditor> {
  const group = groupShowing(document.uri) ?? vscode.window.tabGroups.activeTabGroup;
  return vscode.window.showTextDocument(document, {
    viewColumn: group.viewColumn,
    preview: false,
    ...(selection ? { selection } : {}),
  });
}
