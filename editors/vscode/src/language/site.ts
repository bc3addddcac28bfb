// Where a verb asks: one open text, and whoever serves its language in this editor.

import * as vscode from 'vscode';
import { Lines, type Place, type Span } from '../place';
import { Refusal, wrong } from '../refusal';
import { stale, type Text } from '../texts';
import type { Call } from '../verbs';
import { nobody, speakersOf } from './speakers';
import { isTypeScript, load } from './typescript';

/** How long is waited for extensions that come to life with the first text of their language. */
const START_WITHIN_MS = 10_000;

/**
 * How long an empty answer is asked for again, the first time that a language is asked about: its server has only
 * begun.
 */
const COLD_MS = 5_000;
const ASK_AGAIN_MS = 300;

/** Languages that were asked about before. No more than the editor knows. */
const warm = new Set<string>();

export class Site {
  private constructor(
    readonly call: Call,
    /** As it was when the verb began. */
    readonly text: Text,
  ) {}

  /** Opens the text. Refused if a version was named and it is at another. */
  static async open(call: Call, path: string, version?: number): Promise<Site> {
    const text = await call.desk.texts.open(await call.desk.roots.file(path));
    if (version !== undefined && version !== text.version) throw stale(text);
    return new Site(call, text);
  }

  get document(): vscode.TextDocument {
    return this.text.document;
  }

  get language(): string {
    return this.document.languageId;
  }

  /** A place in the text as the editor takes it; refused if the text has none such. */
  place(place: Place): vscode.Position {
    const offset = new Lines(this.document.getText()).offset(place);
    if (typeof offset === 'string') throw wrong(offset);
    return this.document.positionAt(offset);
  }

  span(span: Span): vscode.Range {
    return new vscode.Range(this.place(span.start), this.place(span.end));
  }

  /** Waits until whoever serves the language can answer. */
  async ready(): Promise<void> {
    const { stop } = this.call;
    if (isTypeScript(this.document)) return load(this.document, stop);
    const sleeping = speakersOf(this.language).filter((extension) => !extension.isActive);
    // What does not come to life is no worse than what is not there.
    const awake = Promise.allSettled(sleeping.map((extension) => Promise.resolve(extension.activate())));
    if (sleeping.length > 0) await Promise.race([awake, pause(START_WITHIN_MS, stop)]);
  }

  /** Asks all who serve the language. `what` is what for: "finds definitions". */
  async ask<T>(
    what: string,
    command: string,
    args: readonly unknown[],
    isEmpty: (answer: T | undefined) => boolean,
  ): Promise<T | undefined> {
    await this.ready();
    const { stop } = this.call;
    const until = warm.has(this.language) || isTypeScript(this.document) ? 0 : Date.now() + COLD_MS;
    for (;;) {
      const answer = (await vscode.commands.executeCommand<T | undefined>(command, ...args)) ?? undefined;
      if (stop.isCancellationRequested) throw new Refusal('timed_out', 'nobody waits for it any more');
      if (!isEmpty(answer)) {
        warm.add(this.language);
        return answer;
      }
      if (speakersOf(this.language).length === 0) throw nobody(this.language, what);
      if (Date.now() >= until) {
        warm.add(this.language);
        return answer;
      }
      await pause(ASK_AGAIN_MS, stop);
    }
  }
}

/** Waits, but not longer than anybody waits for the call. */
export function pause(milliseconds: number, stop: vscode.CancellationToken): Promise<void> {
  return new Promise((done) => {
    const end = (): void => {
      clearTimeout(timer);
      stopped.dispose();
      done();
    };
    const timer = setTimeout(end, milliseconds);
    const stopped = stop.onCancellationRequested(end);
  });
}
