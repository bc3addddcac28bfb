// Places in a text as editors count them: lines from zero, and in a line UTF-16 units from zero.

export interface Place {
  readonly line: number;
  readonly character: number;
}

export interface Span {
  readonly start: Place;
  readonly end: Place;
}

/** The place as it is told; the editor's own positions have more members. */
export function toldPlace(place: Place): Place {
  return { line: place.line, character: place.character };
}

export function toldSpan(span: Span): Span {
  return { start: toldPlace(span.start), end: toldPlace(span.end) };
}

/** The lines of a text. */
export class Lines {
  /** Where each begins, and where it ends without its break. */
  private readonly ends: [number, number][] = [];

  /** A line ends with `\n`, `\r\n` or `\r`; what follows the last break is a line too, be it empty. */
  constructor(private readonly text: string) {
    let start = 0;
    for (const found of text.matchAll(/\r\n|\r|\n/g)) {
      this.ends.push([start, found.index]);
      start = found.index + found[0].length;
    }
    this.ends.push([start, text.length]);
  }

  get count(): number {
    return this.ends.length;
  }

  /** Returns where a place is in the text. Beyond the end of a line is its end; what is no place is said in words. */
  offset(place: Place): number | string {
    const known = this.ends[place.line];
    if (!known) return `there is no line ${place.line}; the last is ${this.ends.length - 1}`;
    const [start, end] = known;
    const offset = Math.min(start + place.character, end);
    if (offset > start && offset < end && isWithinCharacter(this.text, offset)) {
      return `line ${place.line} has no place ${place.character}: it is within a character`;
    }
    return offset;
  }

  /** Returns the place of an offset. Within a break is the end of its line. */
  place(offset: number): Place {
    let [low, high] = [0, this.ends.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.ends[middle]?.[0] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    const [start, end] = this.ends[low] ?? [0, 0];
    return { line: low, character: Math.max(0, Math.min(offset, end) - start) };
  }

  /** Returns the place itself, or the nearest before it that there is. */
  nearest(place: Place): Place {
    const line = Math.min(place.line, this.ends.length - 1);
    const [start, end] = this.ends[line] ?? [0, 0];
    if (line !== place.line) return { line, character: end - start };
    let offset = Math.min(start + place.character, end);
    if (offset > start && offset < end && isWithinCharacter(this.text, offset)) offset -= 1;
    return { line, character: offset - start };
  }
}

/** Whether an offset is between the two halves of a character. */
function isWithinCharacter(text: string, offset: number): boolean {
  const [before, after] = [text.charCodeAt(offset - 1), text.charCodeAt(offset)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/** How many lines a text has as `open_file` counts them: a break ends a line and begins none. */
export function lineCount(text: string): number {
  if (text === '') return 0;
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count += 1;
  return text.endsWith('\n') ? count : count + 1;
}
