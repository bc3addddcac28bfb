// What is shown where: tabs and groups of the real window. These take the person's focus: that is what they are for.

import * as vscode from 'vscode';
import { pathIn, show } from '../panes';
import { Refusal, wrong } from '../refusal';
import type { Call, Verb } from '../verbs';

/** Groups in a window. Beyond it none is split. */
const MAX_PANES = 16;

async function switchBuffer({ args, desk, session }: Call): Promise<object> {
  const path = args.text('path');
  args.done();
  const text = await desk.texts.open(await desk.roots.file(path));
  const isShown = vscode.window.activeTextEditor?.document === text.document;
  desk.doing.note('tab_switched', text.path, session);
  await show(text.document);
  const pane = vscode.window.tabGroups.activeTabGroup.viewColumn;
  // The editor tells of no switch to what is shown already.
  if (isShown) desk.voice.tell('tab_switched', text.path, { pane, ...desk.doing.take('tab_switched', text.path) });
  return { path: text.path, pane, is_active: true, ui: true };
}

async function splitPane({ args, desk, session }: Call): Promise<object> {
  const path = args.maybeText('path');
  const direction = args.choice('direction', ['right', 'down']);
  args.done();
  const { tabGroups } = vscode.window;
  const text = path === undefined ? activeText(desk) : await desk.texts.open(await desk.roots.file(path));
  if (tabGroups.all.length >= MAX_PANES) {
    throw wrong(`there are ${MAX_PANES} panes already; close a buffer to close its panes`);
  }
  desk.doing.note('pane_split', '', session);
  desk.doing.note('tab_switched', text.path, session);
  await vscode.commands.executeCommand(
    direction === 'down' ? 'workbench.action.newGroupBelow' : 'workbench.action.newGroupRight',
  );
  await vscode.window.showTextDocument(text.document, { viewColumn: vscode.ViewColumn.Active, preview: false });
  const panes = tabGroups.all.map((group) => ({
    id: group.viewColumn,
    path: pathIn(group, desk) ?? null,
    is_active: group.isActive,
  }));
  const pane = tabGroups.activeTabGroup.viewColumn;
  desk.voice.tell('pane_split', text.path, { pane, direction, by: session });
  return { pane, panes, ui: true };
}

function activeText(desk: Call['desk']): { path: string; document: vscode.TextDocument } {
  const document = vscode.window.activeTextEditor?.document;
  const text = document && desk.texts.of(document);
  if (!text) throw new Refusal('bad_arguments', 'no buffer is active; name one by `path`');
  return text;
}

export const panes: Record<string, Verb> = {
  switch_buffer: switchBuffer,
  split_pane: splitPane,
};
