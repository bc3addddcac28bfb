// What a person does with the window: tabs, panes, settings, extensions.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { groupAt, pathIn } from '../panes';
import { once } from '../wait';

/** How long a new group may take until something is shown in it. Of one that stays empty nothing is told. */
const FILLED_WITHIN_MS = 1_000;
/** Settings that are named in one event. */
const SECTIONS = ['editor', 'files', 'workbench', 'terminal', 'git', 'search', 'debug', 'extensions', 'prism'] as const;

export function watchWindows(desk: Desk): vscode.Disposable {
  const { roots, texts, voice, doing } = desk;
  return vscode.Disposable.from(
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      const path = editor && texts.of(editor.document)?.path;
      if (path === undefined) return;
      const pane = vscode.window.tabGroups.activeTabGroup.viewColumn;
      voice.tell('tab_switched', path, { pane, ...doing.take('tab_switched', path) });
    }),
    vscode.window.tabGroups.onDidChangeTabGroups(({ opened }) => {
      for (const { viewColumn } of opened) void toldSplit(desk, viewColumn);
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      const sections = SECTIONS.filter((section) => change.affectsConfiguration(section));
      if (roots.all[0] !== undefined) voice.tell('settings_changed', roots.all[0], { sections });
    }),
    vscode.extensions.onDidChange(() => {
      if (roots.all[0] !== undefined)
        voice.tell('plugin_loaded', roots.all[0], { extensions: vscode.extensions.all.length });
    }),
  );
}

async function toldSplit(desk: Desk, pane: number): Promise<void> {
  // What a command splits, it tells of itself.
  if (desk.doing.take('pane_split', '').by !== undefined) return;
  const path = (): string | undefined => {
    const group = groupAt(pane);
    return group && pathIn(group, desk);
  };
  if (path() === undefined)
    await once(vscode.window.tabGroups.onDidChangeTabs, () => path() !== undefined, FILLED_WITHIN_MS);
  const shown = path();
  if (shown !== undefined) desk.voice.tell('pane_split', shown, { pane });
}
