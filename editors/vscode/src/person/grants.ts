// The tree of what waits and who may do what, with the time that each has left.

import { basename } from 'node:path';
import * as vscode from 'vscode';
import type { Asker } from './ask';
import type { Board } from './board';
import { inShort } from './confirmation';
import { isAtWork } from './status';
import { waiting, type ActionView, type GrantView, type Waiting } from './views';
import {
  ago,
  count,
  cut,
  escaped,
  isRisky,
  label,
  left,
  riskyFirst,
  scopeInShort,
  scopeInWords,
  visible,
} from './words';

/** The last actions of a grant that are listed. */
const MAX_ACTIONS = 10;
/** How often the times are drawn anew: by the second only when it matters, so that nothing flickers under the pointer. */
const CALM_MS = 15_000;
const LATE_MS = 1000;

type Node =
  | { readonly kind: 'waiting'; readonly one: Waiting }
  | { readonly kind: 'grant'; readonly grant: GrantView }
  | { readonly kind: 'fact'; readonly id: string; readonly icon: string; readonly text: string; readonly more?: string }
  | { readonly kind: 'scopes'; readonly grant: GrantView }
  | { readonly kind: 'history'; readonly grant: GrantView }
  | { readonly kind: 'action'; readonly action: ActionView; readonly id: string };

export class Grants implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  private readonly view: vscode.TreeView<Node>;
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly board: Board,
    private readonly asker: Asker,
  ) {
    this.view = vscode.window.createTreeView('prism.grants', { treeDataProvider: this });
    this.parts = [
      this.changed,
      this.view,
      board.onChange(() => this.draw()),
      this.view.onDidChangeVisibility(() => this.draw()),
    ];
    this.draw();
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      const { grants } = this.board.snapshot;
      const asked = waiting(this.board.snapshot).map((one): Node => ({ kind: 'waiting', one }));
      const isRoot = (grant: GrantView): boolean => !grants.some((other) => other.id === grant.parent);
      return [...asked, ...grants.filter(isRoot).map((grant): Node => ({ kind: 'grant', grant }))];
    }
    if (node.kind === 'grant') return this.partsOf(node.grant);
    if (node.kind === 'scopes') {
      return riskyFirst(node.grant.scopes).map((scope) => {
        const icon = isRisky(scope) ? 'warning' : 'check';
        return { kind: 'fact', id: `${node.grant.id} ${scope}`, icon, text: scopeInWords(scope), more: scope };
      });
    }
    if (node.kind === 'history') {
      const last = node.grant.last.slice(0, MAX_ACTIONS);
      return last.map((action, i) => ({ kind: 'action', action, id: `${node.grant.id} action ${i}` }));
    }
    return [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case 'waiting':
        return this.waitingItem(node.one);
      case 'grant':
        return this.grantItem(node.grant);
      case 'fact': {
        const item = new vscode.TreeItem(node.text);
        item.id = node.id;
        item.iconPath = new vscode.ThemeIcon(node.icon);
        if (node.more) item.description = node.more;
        item.tooltip = [node.text, node.more].filter(Boolean).join(' ');
        return item;
      }
      case 'scopes': {
        const { scopes, id } = node.grant;
        const item = new vscode.TreeItem(`may ${riskyFirst(scopes).slice(0, 2).map(scopeInShort).join(', ')}`);
        item.id = `${id} scopes`;
        item.iconPath = new vscode.ThemeIcon('key');
        item.collapsibleState = vscode.TreeItemCollapsibleState.Collapsed;
        if (scopes.length > 2) item.description = `and ${scopes.length - 2} more`;
        return item;
      }
      case 'history': {
        const last = node.grant.last[0];
        const item = new vscode.TreeItem(
          count(node.grant.actions, 'action'),
          vscode.TreeItemCollapsibleState.Collapsed,
        );
        item.id = `${node.grant.id} history`;
        item.iconPath = new vscode.ThemeIcon('history');
        if (last) item.description = `last ${ago(last.at, Date.now())}: ${visible(last.action)}`;
        return item;
      }
      case 'action': {
        const item = new vscode.TreeItem(visible(node.action.action));
        item.id = node.id;
        item.description = cut(visible([node.action.about, node.action.result].filter(Boolean).join(' · ')), 120);
        item.iconPath = new vscode.ThemeIcon(
          node.action.result === 'ok' || node.action.result === 'allowed' ? 'check' : 'circle-outline',
        );
        item.tooltip = `${new Date(node.action.at).toLocaleTimeString()} ${visible(node.action.about)}`;
        return item;
      }
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
  }

  private draw(): void {
    clearTimeout(this.timer);
    const { grants } = this.board.snapshot;
    const asked = waiting(this.board.snapshot).length;
    this.view.badge = asked > 0 ? { value: asked, tooltip: `${count(asked, 'request')} waiting` } : undefined;
    this.changed.fire(undefined);
    if (!this.view.visible || grants.length === 0) return;
    const soonest = Math.min(...grants.map((grant) => grant.expiresAt)) - Date.now();
    this.timer = setTimeout(() => this.draw(), soonest < 135_000 ? LATE_MS : CALM_MS);
  }

  private partsOf(grant: GrantView): Node[] {
    const nodes: Node[] = grant.roots.map((root, i) => {
      const [text, more] = [visible(basename(root)) || '/', visible(root)];
      return { kind: 'fact', id: `${grant.id} root ${i}`, icon: 'folder', text, more };
    });
    nodes.push({ kind: 'scopes', grant });
    if (grant.confirmsChanges) {
      nodes.push({ kind: 'fact', id: `${grant.id} confirms`, icon: 'checklist', text: 'you confirm each change' });
    }
    if (grant.actions > 0) nodes.push({ kind: 'history', grant });
    // Those that came from it end with it.
    const children = this.board.snapshot.grants.filter((other) => other.parent === grant.id);
    return [...nodes, ...children.map((child): Node => ({ kind: 'grant', grant: child }))];
  }

  private grantItem(grant: GrantView): vscode.TreeItem {
    const item = new vscode.TreeItem(visible(grant.agent), vscode.TreeItemCollapsibleState.Expanded);
    const now = Date.now();
    item.id = grant.id;
    item.contextValue = 'grant';
    item.description = left(grant.expiresAt, now);
    item.iconPath = new vscode.ThemeIcon(isAtWork(grant) ? 'pulse' : 'person');
    const lines = [
      `**${escaped(grant.agent)}** ${isAtWork(grant) ? 'is at work' : 'has access'}`,
      '',
      `Until ${new Date(grant.expiresAt).toLocaleTimeString()}, ${left(grant.expiresAt, now)}`,
      '',
      ...grant.roots.map((root) => `- ${escaped(root)}`),
    ];
    item.tooltip = new vscode.MarkdownString(lines.join('\n'));
    item.accessibilityInformation = { label: `${visible(grant.agent)}, grant, ${left(grant.expiresAt, now)}` };
    return item;
  }

  private waitingItem(one: Waiting): vscode.TreeItem {
    const what = one.kind === 'request' ? 'asks for access' : `wants to ${cut(inShort(one), 80)}`;
    const item = new vscode.TreeItem(`${label(one.agent)} ${what}`);
    item.id = one.id;
    item.contextValue = 'waiting';
    item.description = one.kind === 'request' ? cut(visible(one.reason), 80) : '';
    item.iconPath = new vscode.ThemeIcon('bell-dot', new vscode.ThemeColor('editorWarning.foreground'));
    item.command = { command: 'prism.showRequests', title: 'Decide', arguments: [one.id] };
    if (!this.asker.isHere(one))
      item.tooltip = "It is about another folder than this window's. You can decide here all the same.";
    return item;
  }
}
