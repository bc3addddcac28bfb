// Where the person sees a build: a task that they can stop, as if they had begun it.

import * as vscode from 'vscode';

import { History } from '../terminal/history';
import { Screen } from '../terminal/screen';

export interface Shown {
  line(line: string): void;
  end(exitCode: number | null): void;
}

let begun = 0;

/** `stop` is called if the person ends it. */
export function showRun(name: string, command: string, stop: () => void): Shown {
  // For whoever looks later.
  const printed = new History();
  printed.push(Buffer.from(`> ${command}\n`));
  const screen = new Screen({ isPlain: true, printed: () => printed.bytes(), closed: stop });
  const close = wouldSave() ? inTerminal(name, screen) : asTask(name, screen);
  return {
    line(line) {
      const text = readable(line);
      if (text === undefined) return;
      const bytes = Buffer.from(`${text}\n`);
      printed.push(bytes);
      screen.print(bytes);
    },
    end: (exitCode) => close(exitCode ?? 1),
  };
}

/** Before a task the editor saves what is open, if the person has not set it otherwise; a build here must not. */
function wouldSave(): boolean {
  const saves = vscode.workspace.getConfiguration('task').get('saveBeforeRun') !== 'never';
  return saves && vscode.workspace.textDocuments.some((document) => document.isDirty);
}

function asTask(name: string, screen: Screen): (exitCode: number) => void {
  begun += 1;
  // The number makes it another task: of one that runs already the person would be asked whether to end it.
  const definition = { type: 'prism', run: begun };
  const task = new vscode.Task(
    definition,
    vscode.TaskScope.Workspace,
    name,
    'Prism',
    new vscode.CustomExecution(() => Promise.resolve(screen)),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Never, focus: false, showReuseMessage: false };
  // The build does not wait for it: where there are no tasks, as in a folder that is not trusted, it is only not seen.
  vscode.tasks.executeTask(task).then(undefined, () => {});
  return (exitCode) => screen.end(exitCode);
}

function inTerminal(name: string, screen: Screen): () => void {
  const options = { name: `Prism: ${name}`, pty: screen, iconPath: new vscode.ThemeIcon('robot'), isTransient: true };
  const terminal = vscode.window.createTerminal(options);
  return () => terminal.dispose();
}

/** What tools say for programs, as they would have said it to a person. */
function readable(line: string): string | undefined {
  if (!line.startsWith('{"')) return line;
  try {
    const said = JSON.parse(line) as { message?: { rendered?: string }; Output?: string };
    return (said.message?.rendered ?? said.Output)?.trimEnd();
  } catch {
    return line;
  }
}
