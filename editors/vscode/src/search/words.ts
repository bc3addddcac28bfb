// Words in a text, where they stand as editors count it.

import { Lines, type Span } from '../place';

/** One place where something stands. */
export interface Hit {
  readonly range: Span;
  /** The beginning of the line that it starts in. */
  readonly line_text: string;
  /** The same place by offsets in the text. */
  readonly start: number;
  readonly end: number;
}

export interface Hits {
  readonly hits: Hit[];
  /** Whether there are more than asked for. */
  readonly isCut: boolean;
}

/** Letters of a line that are shown. */
const MAX_LINE = 300;

/** The longest that is looked for. */
const MAX_LENGTH = 8 * 1024;

/** Says in words why something cannot be looked for. */
export function faultOf(words: string): string | undefined {
  if (words === '' || /[\r\n]/.test(words)) return 'must be a part of one line';
  if (Buffer.byteLength(words) > MAX_LENGTH) return `must have at most ${MAX_LENGTH} bytes`;
  return undefined;
}

/** Finds words in a text, from left to right, where they do not overlap. */
export function find(text: string, words: string, ignoresCase: boolean, limit: number): Hits {
  // Words that are escaped take no longer than the text is, whatever they are.
  const pattern = new RegExp(words.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), ignoresCase ? 'giu' : 'gu');
  const places: [number, number][] = [];
  for (const found of text.matchAll(pattern)) {
    places.push([found.index, found.index + found[0].length]);
    if (places.length > limit) break;
  }
  return hitsAt(text, places, limit);
}

/** The places as they are told. */
export function hitsAt(text: string, places: readonly (readonly [number, number])[], limit: number): Hits {
  if (places.length === 0) return { hits: [], isCut: false };
  const lines = new Lines(text);
  const hits = places.slice(0, limit).map(([start, end]) => {
    const range = { start: lines.place(start), end: lines.place(end) };
    return { range, line_text: lineFrom(text, start - range.start.character), start, end };
  });
  return { hits, isCut: places.length > limit };
}

/** As much of a line as is shown. */
export function lineFrom(text: string, start: number): string {
  // No letter has more than two units.
  const line = text.slice(start, start + 2 * MAX_LINE);
  const end = line.search(/[\r\n]/);
  return [...(end < 0 ? line : line.slice(0, end))].slice(0, MAX_LINE).join('');
}
