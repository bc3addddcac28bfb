// The table of verbs: what this editor can do, by the names that agents use. What runs programs (commands, terminals, builds, tests,
// git) is done by the daemon behind its fence, and only shown here (runs.ts). The tree of files is the daemon's too: it reads ignore
// files that the editor's API does not read; and it has syntax trees, which the editor does not give away.

import type * as vscode from 'vscode';
import type { Args } from './args';
import type { Desk } from './desk';
import { apply_quick_fix } from './verbs/advanced/fix';
import { get_code_lens } from './verbs/advanced/lens';
import { refactor_symbol } from './verbs/advanced/rename';
import { get_completions } from './verbs/analysis/completions';
import { goto_definition } from './verbs/analysis/definition';
import { get_errors } from './verbs/analysis/errors';
import { format_code } from './verbs/analysis/format';
import { buffers } from './verbs/buffers';
import { files } from './verbs/files';
import { panes } from './verbs/panes';
import { find_in_file } from './verbs/search/find';
import { ripgrep } from './verbs/search/place';
import { find_in_project, regex_search } from './verbs/search/project';
import { replace_text } from './verbs/search/replace';
import { sync } from './verbs/sync';

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
    get_errors,
    get_completions,
    goto_definition,
    format_code,
    get_code_lens,
    apply_quick_fix,
    refactor_symbol,
    find_in_file,
    // Without ripgrep the built-in editor searches the files, and nothing is replaced in several.
    ...(ripgrep ? { find_in_project, regex_search, replace_text } : {}),
  }),
);
