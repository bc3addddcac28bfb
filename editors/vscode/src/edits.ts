// Edits on a text by offset, made all at once, and what undoes them.

import type { Span } from './place';
import { Lines } from './place';
import { wrong } from './refusal';

/** One replacement, about the text as it was before any of its fellows. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly newText: string;
}

/**
 * Returns the text with all edits made, and the edits that lead back. Several insertions at one place stay in their
 * order.
 */
export function applied(text: string, edits: readonly TextEdit[]): { text: string; back: TextEdit[] } {
  const order = edits.map((_, i) => i);
  const at = (i: number): TextEdit => edits[i] as TextEdit;
  order.sort((a, b) => at(a).start - at(b).start || at(a).end - at(b).end || a - b);
  const parts: string[] = [];
  const back: TextEdit[] = [];
  let [done, last, length] = [0, 0, 0];
  for (const i of order) {
    const { start, end, newText } = at(i);
    if (start < done) throw wrong(`edits ${last} and ${i} overlap`);
    parts.push(text.slice(done, start), newText);
    length += start - done;
    back.push({ start: length, end: length + newText.length, newText: text.slice(start, end) });
    length += newText.length;
    [done, last] = [end, i];
  }
  parts.push(text.slice(done));
  return { text: parts.join(''), back };
}

/** Edits by place, as offsets in a text. */
export function offsets(text: string, edits: readonly { range: Span; newText: string }[]): TextEdit[] {
  const lines = new Lines(text);
  return edits.map(({ range, newText }, i) => {
    const [start, end] = [lines.offset(range.start), lines.offset(range.end)];
    if (typeof start === 'string') throw wrong(`edit ${i}: ${start}`);
    if (typeof end === 'string') throw wrong(`edit ${i}: ${end}`);
    if (start > end) throw wrong(`edit ${i}: \`range\` ends before it starts`);
    return { start, end, newText };
  });
}

/** A text with one kind of line break, as an editor keeps it. */
export function withBreaks(text: string, lineBreak: string): string {
  return text.replace(/\r\n|\r|\n/g, lineBreak);
}

/** The one edit that leads from a text to another: what they begin and end with alike stays. */
export function difference(from: string, to: string): TextEdit {
  const most = Math.min(from.length, to.length);
  let start = 0;
  while (start < most && from.charCodeAt(start) === to.charCodeAt(start)) start += 1;
  let end = 0;
  while (end < most - start && from.charCodeAt(from.length - 1 - end) === to.charCodeAt(to.length - 1 - end)) end += 1;
  return { start, end: from.length - end, newText: to.slice(start, to.length - end) };
}
