// Prism's commands: what a person can do from the palette, the tree and the status bar.

import { execFile } from 'node:child_process';
import * as vscode from 'vscode';
import { once } from '../wait';
import type { Asker } from './ask';
import type { Board } from './board';
import type { Configs } from './configs';
import { oneLine, showMenu } from './status';
import { object, text, waiting, type GrantView } from './views';
import { count, label, left, visible } from './words';

/** How long `prism console --print` may take. */
const LINK_MS = 10_000;
/** How long a new shell may take to listen, if it ever says so. */
const SHELL_MS = 3000;

/** What the commands need beside the board. */
export interface Hands {
  readonly log: vscode.LogOutputChannel;
  /** Prism's folder, for the command line. */
  home(): string;
  reconnect(): void;
}

export function commands(board: Board, asker: Asker, configs: Configs, hands: Hands): vscode.Disposable {
  const made = (id: string, run: (...args: unknown[]) => unknown): vscode.Disposable => {
    return vscode.commands.registerCommand(`prism.${id}`, async (...args: unknown[]) => {
      try {
        await run(...args);
      } catch (error) {
        void vscode.window.showWarningMessage(`Prism: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
  };
  return vscode.Disposable.from(
    made('menu', () => showMenu(board, asker)),
    made('showRequests', (id) => showRequests(board, asker, text(id))),
    made('showConfig', (id) => configs.show(text(id))),
    made('typeTrust', (id) => typed(configs.fix(text(id)), hands)),
    made('revoke', (node) => revokeOne(board, grantOf(node))),
    made('revokeAll', () => revokeAll(board)),
    made('copySessionId', async (node) => {
      const grant = grantOf(node) ?? (await chooseGrant(board, 'Copy the session id of which grant?'));
      if (grant) await vscode.env.clipboard.writeText(grant.id);
    }),
    made('openConsole', () => openConsole(hands)),
    made('reconnect', () => hands.reconnect()),
    made('showLog', () => hands.log.show()),
    made('serve', () => inTerminal('prism serve --detach', hands)),
  );
}

async function showRequests(board: Board, asker: Asker, id: string): Promise<void> {
  const asked = waiting(board.snapshot);
  const named = asked.find((one) => one.id === id);
  if (named) return asker.show(named);
  if (asked.length === 0) {
    const why = board.isConnected ? 'nothing waits for you' : 'not connected to the daemon';
    vscode.window.setStatusBarMessage(`Prism: ${why}`, 5000);
    return;
  }
  const only = asked.length === 1 ? asked[0] : undefined;
  if (only) return asker.show(only);
  const entries = asked.map((one) => ({ label: label(oneLine(one)), iconPath: new vscode.ThemeIcon('bell-dot'), one }));
  const chosen = await vscode.window.showQuickPick(entries, { title: 'Waiting for you', placeHolder: 'Which one?' });
  if (chosen) asker.show(chosen.one);
}

async function revokeOne(board: Board, named: GrantView | undefined): Promise<void> {
  const grant = named ?? (await chooseGrant(board, 'Revoke which grant?'));
  if (!grant) return;
  const children = board.snapshot.grants.filter((other) => other.parent === grant.id).length;
  const detail = ['Its connection is closed at once. What it has changed stays.'];
  if (children > 0) detail.push(`${count(children, 'grant')} that came from it ends too.`);
  if (await sure(`Take ${visible(grant.agent)}'s access away?`, detail.join(' '), 'Revoke'))
    await board.revoke(grant.id);
}

async function revokeAll(board: Board): Promise<void> {
  const { grants } = board.snapshot;
  if (grants.length === 0) {
    vscode.window.setStatusBarMessage('Prism: no agent has access', 5000);
    return;
  }
  const names = grants.map((grant) => visible(grant.agent)).join(', ');
  if (!(await sure(`Take away all access, of ${count(grants.length, 'grant')}?`, names, 'Revoke all'))) return;
  const ended = await Promise.allSettled(board.snapshot.grants.map((grant) => board.revoke(grant.id)));
  // One that ended with its parent is no trouble.
  const alive = new Set(board.snapshot.grants.map((grant) => grant.id));
  const failed = ended.find((one, i) => one.status === 'rejected' && alive.has(grants[i]?.id ?? ''));
  if (failed?.status === 'rejected') throw failed.reason;
}

async function chooseGrant(board: Board, title: string): Promise<GrantView | undefined> {
  const now = Date.now();
  const entries = board.snapshot.grants.map((grant) => ({
    label: label(grant.agent),
    description: left(grant.expiresAt, now),
    detail: grant.roots.map(label).join(', '),
    grant,
  }));
  if (entries.length === 0) {
    vscode.window.setStatusBarMessage('Prism: no agent has access', 5000);
    return undefined;
  }
  return (await vscode.window.showQuickPick(entries, { title, placeHolder: 'Agents with access' }))?.grant;
}

/** The person has asked for it themselves, so a dialog that only they can close is right here. */
async function sure(question: string, detail: string, act: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, act)) === act;
}

/** Has the daemon make a link, and opens it. The link is good once, for a minute; it is made by whoever may decide. */
async function openConsole(hands: Hands): Promise<void> {
  const link = await new Promise<string | Error>((done) => {
    const options = { timeout: LINK_MS, env: { ...process.env, PRISM_HOME: hands.home() } };
    execFile('prism', ['console', '--print', '--json'], options, (error, stdout) => {
      if (error) return done(error);
      try {
        done(text(object(JSON.parse(stdout))['url']));
      } catch {
        done(new Error('prism printed no link'));
      }
    });
  });
  if (typeof link === 'string' && link !== '') {
    await vscode.env.openExternal(vscode.Uri.parse(link, true));
    return;
  }
  // Where this process does not find prism, a person's shell may.
  hands.log.info(`prism console: ${String(link)}`);
  inTerminal('prism console', hands);
}

function inTerminal(command: string, hands: Hands): void {
  terminalOf(hands).sendText(command);
}

/** Types it and leaves Enter to the person. Before the shell listens it would be shown twice. */
async function typed(command: string, hands: Hands): Promise<void> {
  const terminal = terminalOf(hands);
  if (tellsWhenItListens()) {
    // It tells its folder with each prompt, and not before.
    const told = vscode.window.onDidChangeTerminalShellIntegration;
    await once(told, (change) => change.terminal === terminal && change.shellIntegration.cwd !== undefined, SHELL_MS);
  }
  terminal.sendText(command, false);
}

function tellsWhenItListens(): boolean {
  const isOn = vscode.workspace.getConfiguration('terminal.integrated.shellIntegration').get('enabled') !== false;
  // Forks may have terminals, and not tell what happens in them.
  return isOn && vscode.window.onDidChangeTerminalShellIntegration !== undefined;
}

function terminalOf(hands: Hands): vscode.Terminal {
  const terminal = vscode.window.createTerminal({ name: 'Prism', env: { PRISM_HOME: hands.home() } });
  terminal.show();
  return terminal;
}

/** Of a node of the tree, if it is one of a grant. */
function grantOf(node: unknown): GrantView | undefined {
  const grant = object(node)['grant'];
  return typeof grant === 'object' && grant !== null ? (grant as GrantView) : undefined;
}
