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

/** Waits for something, and no longer than that. */
export async function atMost(ms: number, doing: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await Promise.race([doing, late]);
  clearTimeout(timer);
}
