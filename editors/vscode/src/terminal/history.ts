// What a terminal has printed: the last of it, under the offsets that it had in all of it. Offsets count bytes.

export interface Piece {
  readonly text: string;
  /** Where the next piece begins. */
  readonly next: number;
  /** Bytes before it that were asked for and are gone. */
  readonly leftOut: number;
}

/** What is kept. The oldest goes first, and an answer says how much has gone. */
export const MAX_KEPT = 1 << 20;

export class History {
  private kept = Buffer.alloc(0);
  private chunks: Buffer[] = [];
  private chunkBytes = 0;
  /** The offset of whatever comes next. */
  end = 0;

  push(bytes: Buffer): void {
    this.end += bytes.length;
    this.chunks.push(bytes);
    this.chunkBytes += bytes.length;
    // Joined once in a while, so that many small pieces cost neither a copy each nor a list without end.
    if (this.chunkBytes > MAX_KEPT / 4 || this.chunks.length > 1024) this.join();
  }

  /** What comes after an offset. A letter that has come in half is left for the next piece, if more can come. */
  after(offset: number, limit: number, canGrow: boolean): Piece {
    this.join();
    const from = Math.min(Math.max(offset, this.start), this.end);
    const skipped = from - this.start;
    const bytes = this.kept.subarray(skipped, skipped + limit);
    const isLast = skipped + bytes.length === this.kept.length;
    let half = isLast && !canGrow ? 0 : halfLetter(bytes);
    // An answer that cannot hold even one letter would never come on.
    if (half === bytes.length && !isLast) half = 0;
    const whole = bytes.subarray(0, bytes.length - half);
    return { text: whole.toString('utf8'), next: from + whole.length, leftOut: Math.max(from - offset, 0) };
  }

  /** The end of it. */
  last(limit: number, canGrow: boolean): Piece {
    this.join();
    let from = Math.max(this.end - limit, this.start);
    // Not from the middle of a letter.
    for (let i = 0; from > this.start && i < 3 && isRest(this.kept[from - this.start]); i += 1) from += 1;
    return { ...this.after(from, limit, canGrow), leftOut: from };
  }

  /** All that is kept. */
  bytes(): Buffer {
    this.join();
    return this.kept;
  }

  private get start(): number {
    return this.end - this.kept.length;
  }

  private join(): void {
    if (this.chunks.length === 0) return;
    const all = Buffer.concat([this.kept, ...this.chunks]);
    this.kept = Buffer.from(all.subarray(Math.max(all.length - MAX_KEPT, 0)));
    this.chunks = [];
    this.chunkBytes = 0;
  }
}

function isRest(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** How many bytes at the end are the beginning of a letter. */
function halfLetter(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isRest(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}
