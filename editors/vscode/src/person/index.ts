// What the person at this window sees of Prism, and decides.

import * as vscode from 'vscode';
import type { Desk } from '../desk';
import { home } from '../find';
import { Asker } from './ask';
import { Board } from './board';
import { commands } from './commands';
import { Configs } from './configs';
import { Shelf } from './diff';
import { Grants } from './grants';
import { Marks } from './marks';
import { Status } from './status';

export function showPerson(desk: Desk): vscode.Disposable {
  desk.line.registerWith({ decides: true });
  const board = new Board(desk.line);
  const shelf = new Shelf();
  const asker = new Asker(board, () => desk.roots.all, shelf, desk.texts, desk.log);
  const configs = new Configs(board, shelf, desk.log);
  const status = new Status(board, asker);
  const grants = new Grants(board, asker);
  const marks = new Marks(desk.texts, board);
  const hands = { log: desk.log, home, reconnect: () => desk.line.again() };
  // By this the tree knows what to say while it is empty.
  const say = (): unknown => {
    const state = board.isTold ? 'told' : board.isConnected ? 'connected' : 'off';
    return vscode.commands.executeCommand('setContext', 'prism.state', state);
  };
  say();
  return vscode.Disposable.from(
    commands(board, asker, configs, hands),
    board.onChange(say),
    marks,
    grants,
    status,
    asker,
    configs,
    shelf,
    board,
  );
}
