// The table of verbs: what this editor can do, by the names that agents use.

import type * as vscode from 'vscode';
import type { Args } from './args';
import type { Desk } from './desk';
import { advanced } from './verbs/advanced';
import { analysis } from './verbs/analysis';
import { buffers } from './verbs/buffers';
import { build } from './verbs/build';
import { command } from './verbs/command';
import { files } from './verbs/files';
import { git } from './verbs/git';
import { panes } from './verbs/panes';
import { project } from './verbs/project';
import { search } from './verbs/search';
import { sync } from './verbs/sync';
import { terminal } from './verbs/terminal';

/** One command on its way. */
export interface Call {
  readonly args: Args;
  /** Whose doing it is. */
  readonly session: string;
  /** Whether a real path is in a folder that was granted to it: it may be open here and still be none of its business. */
  mayChange(path: string): boolean;
  /** Cancelled by `cancel`, by the deadline, and when the connection is lost. */
  readonly stop: vscode.CancellationToken;
  readonly desk: Desk;
  progress(message: string, done?: number, total?: number): void;
}

/** Does it, or throws a `Refusal`. */
export type Verb = (call: Call) => Promise<object> | object;

export const verbs: ReadonlyMap<string, Verb> = new Map(
  Object.entries({
    ...files,
    ...buffers,
    ...panes,
    ...sync,
    ...analysis,
    ...advanced,
    ...search,
    ...project,
    ...terminal,
    ...command,
    ...build,
    ...git,
  }),
);
