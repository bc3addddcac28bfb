// Waits, none without an end.

import type * as vscode from 'vscode';

/** Waits for an event that fits, and no longer than that. */
export function once<T>(event: vscode.Event<T>, fits: (value: T) => boolean, withinMs: number): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      subscription.dispose();
      clearTimeout(timer);
      done();
    };
    const timer = setTimeout(end, withinMs);
    const subscription = event((value) => {
      if (fits(value)) end();
    });
  });
}

/** Waits for something, and no longer than that: then there is nothing. */
export async function within<T>(ms: number, doing: Promise<T> | Thenable<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((done) => {
    timer = setTimeout(() => done(undefined), ms);
  });
  return Promise.race([doing, late]).finally(() => clearTimeout(timer));
}
