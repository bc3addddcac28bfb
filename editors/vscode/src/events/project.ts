// What happens to the project as a whole: `workspace_changed`, `config_updated`. Builds and tests are told by the daemon, which runs them.

import * as vscode from 'vscode';

import type { Desk } from '../desk';

/** How long is waited after a setting has changed: an editor tells of several at once. */
const PAUSE = 100;

export function watchProject(desk: Desk): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  const listening = [
    desk.roots.onChange(() => desk.voice.tell('workspace_changed', undefined, { roots: [...desk.roots.all] })),
    vscode.workspace.onDidChangeConfiguration(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        desk.voice.tell('config_updated', undefined);
      }, PAUSE);
    }),
  ];
  return new vscode.Disposable(() => {
    clearTimeout(timer);
    listening.forEach((one) => one.dispose());
  });
}
