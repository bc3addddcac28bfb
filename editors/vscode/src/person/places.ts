// Places in a text that changes around them, by how many units they are from its beginning.

export interface Place {
  start: number;
  end: number;
}

/** A part of a text that was replaced, as the editor tells it. */
export interface Change {
  readonly rangeOffset: number;
  readonly rangeLength: number;
  readonly text: string;
}

/** Where the new texts of one change are, in the text that it made. */
export function placesAfter(changes: readonly Change[]): Place[] {
  let moved = 0;
  return [...changes]
    .sort((a, b) => a.rangeOffset - b.rangeOffset)
    .map(({ rangeOffset, rangeLength, text }) => {
      const start = rangeOffset + moved;
      moved += text.length - rangeLength;
      return { start, end: start + text.length };
    });
}

/** Moves a place as the text around it moves; what is typed within it becomes a part of it. */
export function shift(place: Place, { rangeOffset, rangeLength, text }: Change): void {
  const [end, grown] = [rangeOffset + rangeLength, text.length - rangeLength];
  if (rangeOffset >= place.end) return;
  if (end <= place.start) {
    place.start += grown;
    place.end += grown;
    return;
  }
  place.start = Math.min(place.start, rangeOffset);
  place.end = Math.max(place.end + grown, rangeOffset + text.length);
}
