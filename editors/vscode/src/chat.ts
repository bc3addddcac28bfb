// The bell in the editor's own chat, where it has one and the person wants it: an agent that lives there has no other ear.

import * as vscode from 'vscode';
import type { Desk } from './desk';
import { within } from './wait';

/** Opens the chat with a text and sends it. Cursor and Void have chats of their own, and no command that does this. */
const OPEN = 'workbench.action.chat.open';
/** What a daemon that says no deadline waits at the most. */
const WITHIN_MS = 10_000;

export function watchChat(desk: Desk): vscode.Disposable {
  let offered = false;
  const offer = async (): Promise<void> => {
    const wanted = isWanted() && (await canOpen());
    if (wanted === offered) return;
    offered = wanted;
    desk.line.registerWith({ chat: wanted });
  };
  void offer();
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('prism.chat.wake')) void offer();
    }),
    desk.line.onMessage('ring', (message) => {
      const { id, text, deadline_ms } = message as { id?: unknown; text?: unknown; deadline_ms?: unknown };
      if (typeof id !== 'number') return;
      void ring(typeof text === 'string' ? text : '', typeof deadline_ms === 'number' ? deadline_ms : WITHIN_MS).then(
        () => desk.line.send({ type: 'rung', id, status: 'ok' }),
        (error: unknown) => {
          const why = error instanceof Error ? error.message : String(error);
          desk.log.warn(`The chat was not rung: ${why}`);
          desk.line.send({ type: 'rung', id, status: 'error', error: { code: 'failed', message: why } });
        },
      );
    }),
  );
}

async function ring(text: string, withinMs: number): Promise<void> {
  // The person may have changed their mind since the window registered.
  if (!isWanted()) throw new Error('prism.chat.wake is off in this editor');
  if (text.trim() === '') throw new Error('the bell has no text');
  if (!(await canOpen())) throw new Error('this editor has no chat that can be opened');
  // A chat that nobody is signed in to takes the text too: it asks the person to sign in, and wakes nobody.
  if ((await vscode.lm.selectChatModels()).length === 0) {
    throw new Error('the chat of this editor has no model; sign in to it first');
  }
  const query = { query: text, isPartialQuery: false, mode: 'agent' };
  const opened = vscode.commands.executeCommand(OPEN, query).then(() => true);
  if (!(await within(withinMs, opened))) throw new Error('the chat did not open in time');
}

function isWanted(): boolean {
  return vscode.workspace.getConfiguration('prism').get<boolean>('chat.wake') === true;
}

async function canOpen(): Promise<boolean> {
  return (await vscode.commands.getCommands(true)).includes(OPEN);
}
