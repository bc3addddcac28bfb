// The difference that edits make, as `diff -u` has it. It is drawn from the edits themselves: no lines are compared but
// those that an edit touches.

import { applied, type TextEdit } from './edits';

/** Lines that are replaced by others. */
interface Block {
  /** The first line, and that behind the last. */
  from: number;
  to: number;
  old: string[];
  new: string[];
}

/** Lines that are shown before and after what has changed. */
const CONTEXT = 3;

/** Returns the difference. The changes lie in the text and do not overlap. */
export function unified(path: string, text: string, changes: readonly TextEdit[]): string {
  // A name with a line break in it must not look like a part of the difference.
  const name = path.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\uFFFD');
  const lines = linesOf(text);
  const blocks = blocksOf(text, lines, changes);
  let shown = `--- ${name}\n+++ ${name}\n`;
  let shift = 0;
  for (let i = 0; i < blocks.length;) {
    let end = i + 1;
    while (end < blocks.length && at(blocks, end).from - at(blocks, end - 1).to <= 2 * CONTEXT) end += 1;
    const hunk = blocks.slice(i, end);
    shown += drawn(lines, hunk, shift);
    for (const block of hunk) shift += block.new.length - block.old.length;
    i = end;
  }
  return shown;
}

/** Tells whether two of the changes are about the same letters. */
export function overlap(changes: readonly TextEdit[]): boolean {
  const sorted = inOrder(changes);
  return sorted.some((change, i) => i > 0 && change.start < at(sorted, i - 1).end);
}

function inOrder(changes: readonly TextEdit[]): TextEdit[] {
  return [...changes].sort((a, b) => a.start - b.start || a.end - b.end);
}

/** Lines with their breaks; a text that ends in one has no empty line behind it. */
function linesOf(text: string): string[] {
  return text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
}

function blocksOf(text: string, lines: readonly string[], changes: readonly TextEdit[]): Block[] {
  const starts: number[] = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length;
  }
  const startOf = (line: number): number => starts[line] ?? text.length;
  const lineAt = (place: number): number => {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (startOf(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const groups: { from: number; to: number; changes: TextEdit[] }[] = [];
  for (const change of inOrder(changes)) {
    const from = Math.min(lineAt(change.start), Math.max(0, lines.length - 1));
    // A change up to the beginning of a line joins that line to what comes before it, unless it ends in a break itself.
    const to = Math.min(lines.length, lineAt(change.end) + 1);
    const last = groups.at(-1);
    if (last && from <= last.to) {
      last.to = Math.max(last.to, to);
      last.changes.push(change);
    } else groups.push({ from, to, changes: [change] });
  }
  return groups.flatMap((group) => {
    const [begin, end] = [startOf(group.from), startOf(group.to)];
    const inside = group.changes.map(({ start, end: stop, newText }) => ({
      start: start - begin,
      end: stop - begin,
      newText,
    }));
    const block: Block = {
      from: group.from,
      to: group.to,
      old: lines.slice(group.from, group.to),
      new: linesOf(applied(text.slice(begin, end), inside).text),
    };
    while (block.old.length > 0 && block.old[0] === block.new[0]) {
      block.old.shift();
      block.new.shift();
      block.from += 1;
    }
    while (block.old.length > 0 && block.new.length > 0 && block.old.at(-1) === block.new.at(-1)) {
      block.old.pop();
      block.new.pop();
      block.to -= 1;
    }
    return block.old.length + block.new.length > 0 ? [block] : [];
  });
}

function drawn(lines: readonly string[], hunk: readonly Block[], shift: number): string {
  const from = Math.max(0, at(hunk, 0).from - CONTEXT);
  const to = Math.min(lines.length, at(hunk, hunk.length - 1).to + CONTEXT);
  let [body, added, line] = ['', 0, from];
  const draw = (mark: string, text: string): void => {
    const bare = text.replace(/\r?\n$|\r$/, '');
    body += `${mark}${bare}\n`;
    if (bare === text) body += '\\ No newline at end of file\n';
  };
  for (const block of hunk) {
    for (; line < block.from; line += 1) draw(' ', at(lines, line));
    for (const old of block.old) draw('-', old);
    for (const text of block.new) draw('+', text);
    added += block.new.length - block.old.length;
    line = block.to;
  }
  for (; line < to; line += 1) draw(' ', at(lines, line));
  const [before, after] = [to - from, to - from + added];
  const side = (start: number, count: number): string =>
    `${count === 0 ? start : start + 1}${count === 1 ? '' : `,${count}`}`;
  return `@@ -${side(from, before)} +${side(from + shift, after)} @@\n${body}`;
}

function at<T>(list: readonly T[], i: number): T {
  return list[i] as T;
}
