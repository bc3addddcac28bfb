// A shell in a terminal of the editor's own. What is printed there an extension is told only by the shell's integration: of each
// command, what it prints and how it ends. So the history has what commands print, and not the prompts between them; and a shell
// without integration is given up for a child of ours, so that nothing is lost.

import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';

import { lookAfter, lookAway } from '../command/lookout';
import { beginRun } from '../command/strays';
import { Refusal } from '../refusal';
import type { Wanted } from './child';
import { killSession, type Program } from './program';
import type { Terminal } from './terminals';

/** How long a shell may take to integrate itself: it reads the person's own settings first. */
const INTEGRATING = 5_000;

/** It did not come once, and is not waited for again. */
let hasFailed = false;

/** What the integration says to the editor between what is for people. */
const MARKS = /\x1b\]633;[^\x07\x1b]*(?:\x07|\x1b\\)/g;

/** The shell; `undefined` if it does not tell of its commands. */
export async function startShell(wanted: Wanted, terminal: Terminal): Promise<Program | undefined> {
  if (!canIntegrate()) return undefined;
  const run = beginRun();
  const own = vscode.window.createTerminal({
    name: `Prism: ${terminal.about.line}`,
    cwd: wanted.cwd,
    env: { ...wanted.env, ...run.env },
    isTransient: true,
  });
  // A window that is gone never answers.
  const pid = await Promise.race([own.processId, sleep(INTEGRATING, undefined)]);
  if (pid === undefined || !(await isIntegrated(own))) {
    own.dispose();
    hasFailed = true;
    return undefined;
  }
  const { ears } = terminal;
  lookAfter(pid);
  const listening: vscode.Disposable[] = [
    vscode.window.onDidStartTerminalShellExecution(async ({ terminal: where, execution }) => {
      if (where !== own) return;
      for await (const data of execution.read()) ears.printed(Buffer.from(data.replace(MARKS, '')));
    }),
    vscode.window.onDidEndTerminalShellExecution(({ terminal: where, execution, exitCode }) => {
      if (where === own) ears.executed(execution.commandLine.value, exitCode ?? null);
    }),
    vscode.window.onDidCloseTerminal((closed) => {
      if (closed !== own) return;
      ears.ended({ exitCode: own.exitStatus?.code ?? null, signal: null });
      lookAway(pid);
      void run.end();
      listening.forEach((one) => one.dispose());
    }),
  ];
  terminal.whenLeft(() => own.dispose());
  return {
    pid,
    isTty: true,
    type: (input) => own.sendText(input, false),
    resize: () => Promise.reject(noSize()),
    end() {
      killSession(pid);
      own.dispose();
    },
  };
}

export function canIntegrate(): boolean {
  const isOn = vscode.workspace.getConfiguration('terminal.integrated.shellIntegration').get('enabled') !== false;
  // Forks may have terminals, and not tell what happens in them.
  return isOn && !hasFailed && vscode.window.onDidStartTerminalShellExecution !== undefined;
}

function isIntegrated(own: vscode.Terminal): Promise<boolean> {
  if (own.shellIntegration !== undefined) return Promise.resolve(true);
  return new Promise((resolve) => {
    const over = (answer: boolean) => {
      clearTimeout(late);
      listening.forEach((one) => one.dispose());
      resolve(answer);
    };
    const late = setTimeout(() => over(false), INTEGRATING);
    const listening = [
      vscode.window.onDidChangeTerminalShellIntegration(({ terminal }) => terminal === own && over(true)),
      vscode.window.onDidCloseTerminal((closed) => closed === own && over(false)),
    ];
  });
}

function noSize(): Refusal {
  return new Refusal('unsupported', 'this terminal has the size of its panel; open one with `rows` and `cols`');
}
