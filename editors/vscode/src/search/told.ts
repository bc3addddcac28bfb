// What ripgrep found, in places as editors count them.

import type { Place } from '../place';
import type { Found } from './ripgrep';
import { lineFrom } from './words';

export interface ToldHit {
  readonly path: string;
  readonly range: { readonly start: Place; readonly end: Place };
  readonly line_text: string;
}

const BREAK = 0x0a;

/** Bytes that hold as much of a line as is shown. */
const LINE_BYTES = 4 * 300;

/**
 * The places of some lines, `most` of them, in one go: a line may be long and hold many. What is no UTF-8 counts as the
 * letter that is shown in its place.
 */
export function told(found: Found, path: string, most: number): ToldHit[] {
  const { lines } = found;
  let [byte, lineStart, line, character] = [0, 0, found.line, 0];
  const go = (to: number): Place => {
    for (let at = lines.indexOf(BREAK, byte); at >= 0 && at < to; at = lines.indexOf(BREAK, byte)) {
      [byte, lineStart, line, character] = [at + 1, at + 1, line + 1, 0];
    }
    character += lines.toString('utf8', byte, to).length;
    byte = to;
    return { line, character };
  };
  return found.places.slice(0, most).map(([start, end]) => {
    const from = go(start);
    const line_text = lineFrom(lines.toString('utf8', lineStart, lineStart + LINE_BYTES), 0);
    return { path, range: { start: from, end: go(end) }, line_text };
  });
}
