// Prism in the status bar: whether it is there, who is at work, what waits. A click offers what can be done about it.

import * as vscode from 'vscode';
import type { Asker } from './ask';
import type { Board } from './board';
import { configInShort } from './configs';
import { inShort } from './confirmation';
import { waiting, type GrantView, type Waiting } from './views';
import { count, cut, escaped, label, left, scopeInShort } from './words';

/** Lines of each kind that the tooltip has room for. */
const MAX_LINES = 6;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('prism.status', vscode.StatusBarAlignment.Left, 1);
  private readonly changed: vscode.Disposable;

  constructor(
    private readonly board: Board,
    private readonly asker: Asker,
  ) {
    this.item.name = 'Prism';
    this.item.command = 'prism.menu';
    this.changed = board.onChange(() => this.draw());
    this.draw();
    this.item.show();
  }

  draw(): void {
    const { snapshot, isConnected } = this.board;
    const asked = waiting(snapshot);
    const working = snapshot.grants.filter(isAtWork);
    this.item.text = face(isConnected, asked.length, working.length);
    this.item.backgroundColor = asked.length > 0 ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
    this.item.accessibilityInformation = { label: spoken(isConnected, asked.length, working.length) };
    this.item.tooltip = this.tooltip(asked, working);
  }

  dispose(): void {
    this.changed.dispose();
    this.item.dispose();
  }

  private tooltip(asked: Waiting[], working: GrantView[]): vscode.MarkdownString {
    const now = Date.now();
    const lines: string[] = [];
    if (!this.board.isConnected) {
      lines.push(
        '**Prism is not connected**',
        '',
        'Start its daemon with `prism serve --detach`; this window then connects by itself.',
      );
    } else {
      lines.push('**Prism is connected**');
      if (asked.length > 0) {
        lines.push('', `**${count(asked.length, 'request')} waiting for you**`, '');
        lines.push(
          ...shortened(
            asked,
            (one) => `- ${escaped(oneLine(one))}${this.asker.isHere(one) ? '' : ' _(another folder)_'}`,
          ),
        );
      }
      for (const view of this.board.snapshot.configs) lines.push('', escaped(configInShort(view)));
      if (this.board.snapshot.grants.length > 0) {
        lines.push('', '**Access**', '');
        lines.push(
          ...shortened(this.board.snapshot.grants, (grant) => {
            const work = working.includes(grant) ? 'at work' : 'has access';
            return `- ${escaped(grant.agent)}: ${work}, ${left(grant.expiresAt, now)}`;
          }),
        );
      } else if (this.board.isTold) {
        lines.push('', 'No agent has access now.');
      } else {
        lines.push('', 'This daemon lets no editor decide. Requests are in the console.');
      }
    }
    return new vscode.MarkdownString(lines.join('\n'));
  }
}

/** In one line, for lists of what waits. */
export function oneLine(one: Waiting): string {
  if (one.kind === 'confirmation') return cut(`${one.agent} wants to ${inShort(one)}`, 100);
  return cut(`${one.agent} asks for access: ${one.reason || one.scopes.map(scopeInShort).join(', ')}`, 100);
}

/** It has begun: it is connected, or has done something. */
export function isAtWork(grant: GrantView): boolean {
  return grant.sockets > 0 || grant.actions > 0;
}

/** What the click offers. */
export async function showMenu(board: Board, asker: Asker): Promise<void> {
  type Entry = vscode.QuickPickItem & { run?: () => unknown };
  const command = (icon: string, title: string, id: string): Entry => {
    return { label: title, iconPath: new vscode.ThemeIcon(icon), run: () => vscode.commands.executeCommand(id) };
  };
  const heading = (text: string): Entry => ({ label: text, kind: vscode.QuickPickItemKind.Separator });
  const entries: Entry[] = [];
  const asked = waiting(board.snapshot);
  const { configs, grants } = board.snapshot;
  if (asked.length + configs.length > 0) {
    entries.push(heading('Waiting for you'));
    entries.push(
      ...asked.map((one) => ({
        label: label(oneLine(one)),
        iconPath: new vscode.ThemeIcon('bell-dot'),
        run: () => asker.show(one),
      })),
      ...configs.map((view) => ({
        label: label(configInShort(view)),
        iconPath: new vscode.ThemeIcon('diff'),
        run: () => vscode.commands.executeCommand('prism.showConfig', view.id),
      })),
    );
  }
  entries.push(heading('Prism'));
  if (!board.isConnected) {
    entries.push(
      command('play', "Start Prism's daemon in a terminal", 'prism.serve'),
      command('refresh', 'Reconnect', 'prism.reconnect'),
    );
  } else {
    entries.push(command('list-tree', 'Show who has access', 'prism.grants.focus'));
    if (grants.length > 0) entries.push(command('circle-slash', 'Revoke a grant…', 'prism.revoke'));
    if (grants.length > 1) entries.push(command('clear-all', 'Revoke all…', 'prism.revokeAll'));
    entries.push(command('link-external', 'Open the console', 'prism.openConsole'));
  }
  entries.push(command('output', 'Show the log', 'prism.showLog'));
  const title = board.isConnected ? 'Prism' : 'Prism is not connected';
  const chosen = await vscode.window.showQuickPick(entries, { title, placeHolder: 'What do you want to do?' });
  await chosen?.run?.();
}

function face(isConnected: boolean, asked: number, working: number): string {
  if (!isConnected) return '$(debug-disconnect) Prism';
  if (asked > 0) return `$(bell-dot) Prism: ${count(asked, 'request')} waiting`;
  if (working > 0) return `$(pulse) Prism: ${count(working, 'agent')} at work`;
  return '$(plug) Prism';
}

function spoken(isConnected: boolean, asked: number, working: number): string {
  if (!isConnected) return 'Prism is not connected';
  return `Prism is connected, ${count(working, 'agent')} at work, ${count(asked, 'request')} waiting`;
}

function shortened<T>(list: readonly T[], line: (one: T) => string): string[] {
  const lines = list.slice(0, MAX_LINES).map(line);
  return list.length > MAX_LINES ? [...lines, `- and ${list.length - MAX_LINES} more`] : lines;
}
