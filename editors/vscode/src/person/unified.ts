// A unified diff: what it makes of a text, and which places it is about. It is read strictly: a person decides by it.

interface Hunk {
  /** The first line before, from one; where nothing was before, the line that it comes after. */
  readonly start: number;
  readonly before: string[];
  readonly after: string[];
}

/** What a unified diff makes of a text, or `undefined` if it is not about this one. */
export function applied(before: string, unified: string): string | undefined {
  const hunks = hunksOf(unified);
  if (hunks === undefined) return undefined;
  const lines = linesOf(before);
  const made: string[] = [];
  let at = 0;
  for (const hunk of hunks) {
    const start = hunk.before.length === 0 ? hunk.start : hunk.start - 1;
    if (start < at || start > lines.length) return undefined;
    made.push(...lines.slice(at, start));
    if (hunk.before.some((line, i) => lines[start + i] !== line)) return undefined;
    made.push(...hunk.after);
    at = start + hunk.before.length;
  }
  return made.concat(lines.slice(at)).join('');
}

/** Only the changed places, before and after. */
export function placesOf(unified: string): { before: string; after: string } | undefined {
  const hunks = hunksOf(unified);
  if (hunks === undefined) return undefined;
  const join = (side: (hunk: Hunk) => string[]): string => {
    return hunks.map((hunk) => `@@ line ${hunk.start} @@\n${side(hunk).join('')}`).join('\n');
  };
  return { before: join((hunk) => hunk.before), after: join((hunk) => hunk.after) };
}

/** Reads it strictly: what is not understood is no diff, and is then shown as it is. */
function hunksOf(unified: string): Hunk[] | undefined {
  const lines = linesOf(unified);
  const hunks: Hunk[] = [];
  let i = lines.findIndex((line) => line.startsWith('@@ '));
  if (i < 0) return /^--- .*\n\+\+\+ .*\n$/.test(unified) ? [] : undefined;
  while (i < lines.length) {
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(lines[i] ?? '');
    if (!head) return undefined;
    let [old, fresh] = [Number(head[2] ?? 1), Number(head[4] ?? 1)];
    const hunk: Hunk = { start: Number(head[1]), before: [], after: [] };
    let last: string[][] = [];
    for (i += 1; i < lines.length && (old > 0 || fresh > 0 || lines[i]?.startsWith('\\')); i += 1) {
      const line = lines[i] ?? '';
      const body = line.slice(1);
      switch (line[0]) {
        case ' ':
          last = [hunk.before, hunk.after];
          old -= 1;
          fresh -= 1;
          break;
        case '-':
          last = [hunk.before];
          old -= 1;
          break;
        case '+':
          last = [hunk.after];
          fresh -= 1;
          break;
        case '\\':
          // The line before it ends without a line break.
          for (const side of last) side.push((side.pop() ?? '').replace(/\r?\n$/, ''));
          continue;
        default:
          return undefined;
      }
      for (const side of last) side.push(body);
    }
    if (old !== 0 || fresh !== 0) return undefined;
    hunks.push(hunk);
  }
  return hunks;
}

/** Lines with what ends them. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
