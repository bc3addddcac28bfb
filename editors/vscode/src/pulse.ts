// Whether somebody is at the window. An extension host outlives its window by hours, answers for it, and can do
// nothing: only what the window itself has to answer proves that there is one.

import * as vscode from 'vscode';
import { within } from './wait';

/** How long a window may take. A pong is due within 10 s. */
const WITHIN_MS = 5_000;

let beats = 0;

export async function isWindowAlive(): Promise<boolean> {
  beats += 1;
  const answered = vscode.commands.executeCommand('setContext', 'prism.alive', beats).then(
    () => true,
    () => false,
  );
  return (await within(WITHIN_MS, answered)) === true;
}
