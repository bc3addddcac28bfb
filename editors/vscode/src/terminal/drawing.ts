// What a terminal shows: what was printed, drawn. It is drawn anew each time, from the history, so that nobody pays for it who does
// not look; what was printed before the history begins is not seen. Colours and fonts are left out: it is read as text.

import type { Size } from './program';

export function draw(size: Size, printed: Buffer): object {
  const drawing = new Drawing(size);
  for (const token of printed.toString('utf8').matchAll(TOKENS)) drawing.take(token);
  return drawing.told();
}

/** A sequence with its parts, another that says nothing of the picture, one control letter, or text. */
const TOKENS =
  /\x1b\[([?>=<]?)([\d;:]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]+.|\x1b([0-~])|([\x00-\x1f\x7f])|[^\x00-\x1f\x7f]+/gu;

/** Letters that take two columns. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Letters that belong to the one before them. */
const JOINED = /^[\p{Mn}\u200d\ufe0f]$/u;

interface Row {
  /** A letter for each column; the second column of a wide one has none. */
  cells: string[];
  /** Whether it goes on in the next. */
  isWrapped: boolean;
}

class Drawing {
  private rows: Row[];
  /** The other screen, while a program has the whole one for itself. */
  private main: Row[] | undefined;
  private line = 0;
  private column = 0;
  private saved = { line: 0, column: 0 };
  /** What scrolls. */
  private top = 0;
  private bottom: number;
  private isHidden = false;

  constructor(private readonly size: Size) {
    this.rows = this.blank();
    this.bottom = size.rows - 1;
  }

  take([all, mark, numbers, final, escape, control]: RegExpMatchArray): void {
    if (final !== undefined) this.sequence(mark ?? '', (numbers ?? '').split(/[;:]/).map(Number), final);
    else if (escape !== undefined) this.escape(escape);
    else if (control !== undefined) this.control(control);
    else if (!all.startsWith('\x1b')) for (const letter of all) this.put(letter);
  }

  told(): object {
    const lines = this.rows.map(({ cells, isWrapped }) => {
      return isWrapped ? cells.join('') : `${cells.join('').trimEnd()}\n`;
    });
    const column = Math.min(this.column, this.size.cols - 1);
    return {
      text: lines.join('').trimEnd(),
      rows: this.size.rows,
      cols: this.size.cols,
      cursor: { line: this.line, character: column },
      is_cursor_hidden: this.isHidden,
    };
  }

  private put(letter: string): void {
    if (JOINED.test(letter)) {
      const cells = this.row.cells;
      const before = Math.max(this.column - 1, 0);
      cells[before] = `${cells[before] ?? ''}${letter}`;
      return;
    }
    const width = WIDE.test(letter) ? 2 : 1;
    if (this.column + width > this.size.cols) {
      this.row.isWrapped = true;
      this.column = 0;
      this.down();
    }
    this.row.cells[this.column] = letter;
    if (width === 2) this.row.cells[this.column + 1] = '';
    this.column += width;
  }

  private control(letter: string): void {
    if (letter === '\r') this.column = 0;
    if (letter === '\n' || letter === '\v' || letter === '\f') this.down();
    if (letter === '\b') this.column = Math.max(Math.min(this.column, this.size.cols) - 1, 0);
    if (letter === '\t') this.column = Math.min((this.column >> 3) * 8 + 8, this.size.cols - 1);
  }

  private escape(letter: string): void {
    if (letter === '7') this.saved = { line: this.line, column: this.column };
    if (letter === '8') ({ line: this.line, column: this.column } = this.saved);
    if (letter === 'D' || letter === 'E') this.down();
    if (letter === 'E') this.column = 0;
    if (letter === 'M') this.up();
    if (letter === 'c') this.reset();
  }

  private sequence(mark: string, numbers: number[], final: string): void {
    const [first = 0, second = 0] = numbers;
    const count = Math.max(first, 1);
    if (mark === '?') {
      if (final === 'h' || final === 'l') numbers.forEach((number) => this.mode(number, final === 'h'));
      return;
    }
    if (mark !== '') return;
    switch (final) {
      case 'A': return this.go(Math.max(this.line - count, 0), this.column);
      case 'B': case 'e': return this.go(this.line + count, this.column);
      case 'C': case 'a': return this.go(this.line, this.column + count);
      case 'D': return this.go(this.line, this.column - count);
      case 'E': return this.go(this.line + count, 0);
      case 'F': return this.go(this.line - count, 0);
      case 'G': case '`': return this.go(this.line, count - 1);
      case 'd': return this.go(count - 1, this.column);
      case 'H': case 'f': return this.go(count - 1, Math.max(second, 1) - 1);
      case 'J': return this.eraseScreen(first);
      case 'K': return this.eraseLine(first);
      case 'L': return this.scroll(this.line, -count);
      case 'M': return this.scroll(this.line, count);
      case 'S': return this.scroll(this.top, count);
      case 'T': return this.scroll(this.top, -count);
      case 'X': return this.erase(this.column, this.column + count);
      case 'P': return this.shift(this.column, count);
      case '@': return this.shift(this.column, -count);
      case 's': return this.escape('7');
      case 'u': return this.escape('8');
      case 'r': {
        this.top = Math.min(count - 1, this.size.rows - 1);
        this.bottom = Math.min((second || this.size.rows) - 1, this.size.rows - 1);
        return this.go(0, 0);
      }
    }
  }

  private mode(number: number, isSet: boolean): void {
    if (number === 25) this.isHidden = !isSet;
    if (number !== 47 && number !== 1047 && number !== 1049) return;
    if (isSet && this.main === undefined) {
      this.escape('7');
      this.main = this.rows;
      this.rows = this.blank();
    } else if (!isSet && this.main !== undefined) {
      this.rows = this.main;
      this.main = undefined;
      this.escape('8');
    }
  }

  private go(line: number, column: number): void {
    this.line = Math.min(Math.max(line, 0), this.size.rows - 1);
    this.column = Math.min(Math.max(column, 0), this.size.cols - 1);
  }

  private down(): void {
    if (this.line === this.bottom) this.scroll(this.top, 1);
    else this.line = Math.min(this.line + 1, this.size.rows - 1);
  }

  private up(): void {
    if (this.line === this.top) this.scroll(this.top, -1);
    else this.line = Math.max(this.line - 1, 0);
  }

  /** Moves the lines from one to the end of what scrolls: up, or down if `by` is below zero. */
  private scroll(from: number, by: number): void {
    if (from < this.top || from > this.bottom) return;
    const count = Math.min(Math.abs(by), this.bottom - from + 1);
    const fresh = this.blank(count);
    if (by > 0) {
      this.rows.splice(from, count);
      this.rows.splice(this.bottom - count + 1, 0, ...fresh);
    } else {
      this.rows.splice(this.bottom - count + 1, count);
      this.rows.splice(from, 0, ...fresh);
    }
  }

  private eraseScreen(what: number): void {
    if (what === 0 || what === 1) this.eraseLine(what);
    const [first, last] = what === 0 ? [this.line + 1, this.size.rows] : [0, what === 1 ? this.line : this.size.rows];
    this.rows.splice(first, last - first, ...this.blank(last - first));
  }

  private eraseLine(what: number): void {
    this.erase(what === 0 ? this.column : 0, what === 1 ? this.column + 1 : this.size.cols);
  }

  private erase(from: number, to: number): void {
    this.row.cells.fill(' ', from, Math.min(to, this.size.cols));
    if (to >= this.size.cols) this.row.isWrapped = false;
  }

  /** Takes letters out of the line, or puts blanks in if `by` is below zero. */
  private shift(at: number, by: number): void {
    const { cells } = this.row;
    const count = Math.min(Math.abs(by), this.size.cols - at);
    const blanks = Array<string>(count).fill(' ');
    if (by > 0) {
      cells.splice(at, count);
      cells.push(...blanks);
    } else {
      cells.splice(at, 0, ...blanks);
      cells.length = this.size.cols;
    }
  }

  private reset(): void {
    Object.assign(this, new Drawing(this.size));
  }

  private get row(): Row {
    return (this.rows[this.line] ??= { cells: Array<string>(this.size.cols).fill(' '), isWrapped: false });
  }

  private blank(rows = this.size.rows): Row[] {
    const cells = () => Array<string>(this.size.cols).fill(' ');
    return Array.from({ length: Math.max(rows, 0) }, () => ({ cells: cells(), isWrapped: false }));
  }
}
