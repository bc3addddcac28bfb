// What a command prints: its beginning and its end, as much as an answer should hold, and its lines one by one.

/** What is kept of the beginning, and as much again of the end. The rest is read and dropped; a mark says how much it was. */
export const HALF = 512 << 10;

/** Bytes of a line. The rest of a longer one is not seen by whoever looks at lines. */
const MAX_LINE = 1 << 20;

export class Output {
  private head: Buffer[] = [];
  private headBytes = 0;
  private tail: Buffer[] = [];
  private tailBytes = 0;
  private leftOut = 0;
  private line: Buffer[] = [];
  private lineBytes = 0;

  /** `seen` is given each line. */
  constructor(private readonly seen?: (line: string) => void) {}

  take(bytes: Buffer): void {
    const room = HALF - this.headBytes;
    if (room > 0) {
      const first = bytes.subarray(0, room);
      this.head.push(first);
      this.headBytes += first.length;
    }
    const rest = bytes.subarray(Math.max(room, 0));
    if (rest.length > 0) {
      this.tail.push(rest);
      this.tailBytes += rest.length;
      this.cut();
    }
    if (this.seen !== undefined) this.lines(bytes);
  }

  /** Shows what there is of the last line. */
  end(): void {
    if (this.lineBytes > 0) this.endLine();
  }

  /** Returns it as text, with a mark where something was left out, and how many bytes that was. */
  told(): { text: string; leftOut: number } {
    const mark = this.leftOut > 0 ? [Buffer.from(`\n[… ${this.leftOut} bytes left out …]\n`)] : [];
    return { text: Buffer.concat([...this.head, ...mark, ...this.tail]).toString('utf8'), leftOut: this.leftOut };
  }

  private cut(): void {
    while (this.tailBytes > HALF) {
      const first = this.tail[0];
      if (first === undefined) return;
      const tooMany = Math.min(this.tailBytes - HALF, first.length);
      if (tooMany === first.length) this.tail.shift();
      else this.tail[0] = first.subarray(tooMany);
      this.tailBytes -= tooMany;
      this.leftOut += tooMany;
    }
  }

  private lines(bytes: Buffer): void {
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      this.add(bytes.subarray(from, end));
      this.endLine();
      from = end + 1;
    }
    this.add(bytes.subarray(from));
  }

  private add(bytes: Buffer): void {
    const fits = bytes.subarray(0, MAX_LINE - this.lineBytes);
    if (fits.length === 0) return;
    this.line.push(fits);
    this.lineBytes += fits.length;
  }

  private endLine(): void {
    const line = Buffer.concat(this.line).toString('utf8');
    this.line = [];
    this.lineBytes = 0;
    this.seen?.(line.endsWith('\r') ? line.slice(0, -1) : line);
  }
}
