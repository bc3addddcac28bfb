// A question to the person that can be taken back.
//
// A modal dialog would be the usual thing, but no extension can close one: `showInformationMessage({modal: true})` hands
// on no cancellation, no command closes dialogs, a second one queues behind the first, and on the desktop it is the
// operating system's. A quick pick is as native, is worked by the keyboard, and can be hidden the moment that somebody
// has answered in the console.
//
// It comes while a person may be typing. So the first row never decides anything, a typed letter leads back to it, and
// rows that weigh are deaf for a moment after the question has come and after each letter.

import * as vscode from 'vscode';

/** How long a row that weighs does not listen. Longer than a person's next keystroke, shorter than a thought. */
const DEAF_MS = 500;

export interface Row<T> {
  readonly label: string;
  readonly icon?: string;
  readonly description?: string;
  readonly detail?: string;
  /** What the person means by it. A row without one only tells something. */
  readonly value?: T;
  /** It decides something. */
  readonly weighs?: boolean;
}

/** A heading between rows. */
export interface Heading {
  readonly heading: string;
}

export interface Question<T> {
  readonly title: string;
  readonly hint: string;
  readonly rows: readonly (Row<T> | Heading)[];
}

interface Item<T> extends vscode.QuickPickItem {
  readonly row?: Row<T>;
}

/** Asks. `undefined` if the person put it aside, or if it is gone. */
export function ask<T>(question: Question<T>, gone: vscode.CancellationToken): Promise<T | undefined> {
  const pick = vscode.window.createQuickPick<Item<T>>();
  pick.title = question.title;
  pick.placeholder = question.hint;
  pick.ignoreFocusOut = true;
  pick.items = question.rows.map(item);
  let deafUntil = Date.now() + DEAF_MS;
  pick.onDidChangeValue((typed) => {
    if (typed === '') return;
    deafUntil = Date.now() + DEAF_MS;
    // Nothing is searched for here. Without the letters all rows are there again, with the first one active.
    pick.value = '';
  });
  return shown(pick, gone, (done) => {
    pick.onDidAccept(() => {
      const row = pick.selectedItems[0]?.row ?? pick.activeItems[0]?.row;
      if (row?.value === undefined) return;
      if (row.weighs && Date.now() < deafUntil) return;
      done(row.value);
    });
  });
}

/** Lets the person choose some of several. `undefined` if they went back. */
export function askWhich<T>(
  question: Question<T>,
  chosen: (value: T) => boolean,
  gone: vscode.CancellationToken,
): Promise<T[] | undefined> {
  const pick = vscode.window.createQuickPick<Item<T>>();
  pick.title = question.title;
  pick.placeholder = question.hint;
  pick.ignoreFocusOut = true;
  pick.canSelectMany = true;
  pick.matchOnDescription = true;
  pick.items = question.rows.map(item);
  pick.selectedItems = pick.items.filter((one) => one.row?.value !== undefined && chosen(one.row.value));
  return shown(pick, gone, (done) => {
    pick.onDidAccept(() =>
      done(pick.selectedItems.flatMap((one) => (one.row?.value === undefined ? [] : [one.row.value]))),
    );
  });
}

/** Asks for a line of text. */
export function askText(title: string, hint: string, gone: vscode.CancellationToken): Promise<string | undefined> {
  const input = vscode.window.createInputBox();
  input.title = title;
  input.placeholder = hint;
  input.ignoreFocusOut = true;
  return shown(input, gone, (done) => {
    input.onDidAccept(() => done(input.value));
  });
}

function item<T>(row: Row<T> | Heading): Item<T> {
  if ('heading' in row) return { label: row.heading, kind: vscode.QuickPickItemKind.Separator };
  return {
    label: row.label,
    alwaysShow: true,
    row,
    ...(row.icon && { iconPath: new vscode.ThemeIcon(row.icon) }),
    ...(row.description && { description: row.description }),
    ...(row.detail && { detail: row.detail }),
  };
}

/** Shows it until there is an answer, it is put aside, or it is gone. */
function shown<T>(
  input: vscode.QuickInput,
  gone: vscode.CancellationToken,
  listen: (done: (value: T | undefined) => void) => void,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const done = (value: T | undefined): void => {
      resolve(value);
      cancelled.dispose();
      input.dispose();
    };
    const cancelled = gone.onCancellationRequested(() => done(undefined));
    listen(done);
    input.onDidHide(() => done(undefined));
    if (gone.isCancellationRequested) done(undefined);
    else input.show();
  });
}
