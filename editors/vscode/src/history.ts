// How agents have changed a text, so that it can be led back, and forth again. What a person changes cannot be undone
// from here, nor what came before it: the edits were about another text, and taking them back could take the person's
// words along.

import { applied, type TextEdit } from './edits';
import { wrong } from './refusal';

/**
 * What is kept of one text: changes, and characters in them. The oldest are forgotten, and cannot be undone any more.
 */
const MAX_STEPS = 1_000;
const MAX_CHARACTERS = 4 << 20;

export type Way = 'undo' | 'redo';

export class History {
  private back: TextEdit[][] = [];
  private forth: TextEdit[][] = [];

  /** Notes what leads back from a change that was just made. What had been undone before it cannot be redone. */
  changed(back: TextEdit[]): void {
    this.forth = [];
    this.back.push(back);
    let characters = this.back.reduce((sum, edits) => sum + sizeOf(edits), 0);
    while (this.back.length > MAX_STEPS || characters > MAX_CHARACTERS) {
      characters -= sizeOf(this.back.shift() ?? []);
    }
  }

  /** Somebody else has changed the text. */
  clear(): void {
    [this.back, this.forth] = [[], []];
  }

  /** Returns the text that so many steps lead to, and what is to be called once it is there. */
  retraced(text: string, way: Way, steps: number): { text: string; walk: () => void } {
    const [from, to] = way === 'undo' ? [this.back, this.forth] : [this.forth, this.back];
    if (steps > from.length) {
      const name = way === 'undo' ? 'undone' : 'redone';
      throw wrong(`${from.length} changes can be ${name}, not ${steps}; what a person typed ends what can be`);
    }
    const inverses: TextEdit[][] = [];
    let now = text;
    for (const edits of from.slice(from.length - steps).reverse()) {
      const { text: next, back } = applied(now, edits);
      inverses.push(back);
      now = next;
    }
    const walk = (): void => {
      from.splice(from.length - steps, steps);
      to.push(...inverses);
    };
    return { text: now, walk };
  }
}

function sizeOf(edits: readonly TextEdit[]): number {
  return edits.reduce((sum, edit) => sum + edit.newText.length + 16, 0);
}
