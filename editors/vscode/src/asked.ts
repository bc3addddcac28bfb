// Edits as agents ask for them: by place, or by the words to be replaced, which must be there once. All edits of a
// command are about the same text, so none moves what another is about.

import { Args, kindOf, spanOf } from './args';
import { type TextEdit } from './edits';
import { Lines, type Span } from './place';
import { Refusal, wrong } from './refusal';

/** Edits of one command, and files. The text is gone through for each of them. */
export const MAX_EDITS = 1_000;
export const MAX_FILES = 200;

/** One edit as it was given. */
export interface Asked {
  readonly range: Span | undefined;
  readonly oldText: string | undefined;
  readonly newText: string;
}

/** Reads what is to be changed, if that is what was given. */
export function askedEdits(args: Args): Asked[] | undefined {
  const listed = args.list('edits');
  const [oldText, newText] = [args.take('old_text'), args.take('new_text')];
  if (listed) {
    if (oldText !== undefined || newText !== undefined) {
      throw wrong('give `edits`, or `old_text` and `new_text`, not both');
    }
    return read(listed);
  }
  if (oldText === undefined && newText === undefined) return undefined;
  return read([{ old_text: oldText ?? null, new_text: newText ?? null }]);
}

/** Refuses places in a text that nobody named the version of. */
export function refuseBlind(edits: readonly Asked[], namesVersion: boolean): void {
  if (namesVersion || !edits.some((edit) => edit.range && edit.oldText === undefined)) return;
  throw wrong(
    'a `range` is about one version of the text: give `version` (or `digest`) as open_file told it, ' +
      'or the `old_text` that stands there',
  );
}

/** Finds where each edit is in a text. */
export function placed(text: string, edits: readonly Asked[]): TextEdit[] {
  const lines = new Lines(text);
  return edits.map((edit, i) => {
    const found = edit.range ? inRange(text, lines, edit.range, edit.oldText) : atWords(text, edit.oldText ?? '');
    if (typeof found === 'string') throw wrong(`edit ${i}: ${found}`);
    return { start: found[0], end: found[1], newText: edit.newText };
  });
}

function inRange(text: string, lines: Lines, range: Span, oldText: string | undefined): [number, number] | string {
  const [start, end] = [lines.offset(range.start), lines.offset(range.end)];
  if (typeof start === 'string') return start;
  if (typeof end === 'string') return end;
  if (start > end) return '`range` ends before it starts';
  if (oldText !== undefined && text.slice(start, end) !== oldText) {
    return 'what stands in `range` is not `old_text`; open the file again';
  }
  return [start, end];
}

function atWords(text: string, oldText: string): [number, number] | string {
  const start = text.indexOf(oldText);
  if (start < 0) return '`old_text` is not in the text; open it again';
  // It may overlap with itself, too.
  if (text.indexOf(oldText, start + 1) >= 0) {
    return '`old_text` is in the text more than once; give more of what stands around it';
  }
  return [start, start + oldText.length];
}

function read(listed: readonly unknown[]): Asked[] {
  if (listed.length === 0 || listed.length > MAX_EDITS) {
    throw wrong(`\`edits\` must hold 1 to ${MAX_EDITS} edits, not ${listed.length}`);
  }
  return listed.map((edit, i) => {
    if (kindOf(edit) !== 'an object') throw wrong(`edit ${i} must be an object, not ${kindOf(edit)}`);
    try {
      return readOne(new Args(edit as Record<string, unknown>));
    } catch (error) {
      throw wrong(`edit ${i}: ${Refusal.of(error).message}`);
    }
  });
}

function readOne(args: Args): Asked {
  const range = args.take('range');
  const oldText = args.maybeText('old_text');
  const newText = args.text('new_text');
  args.done();
  if (range !== undefined) return { range: spanOf('range', range), oldText, newText };
  if (oldText === undefined) throw wrong('it needs a `range` or an `old_text`');
  if (oldText === '') throw wrong('`old_text` is empty');
  return { range: undefined, oldText, newText };
}
