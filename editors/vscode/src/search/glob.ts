// Patterns for paths, as the built-in editor has them: `*` and `?` within a name, `[a-z]` and `[!a-z]`, `{a,b}`, and
// `**` for any folders. ripgrep's own globs would override ignore files, so what it finds is held against these
// instead.

type Token =
  | { readonly one: string }
  | 'any-one'
  | 'any'
  | { readonly ranges: readonly [string, string][]; readonly isNot: boolean };
type Part = 'any-folders' | readonly Token[];

/** The longest pattern, and how many it may stand for with its braces. */
const MAX_LENGTH = 1024;
const MAX_ALTERNATIVES = 64;

export class Glob {
  private constructor(
    private readonly alternatives: readonly (readonly Part[])[],
    /** Without a slash in it, it is about the name alone. */
    private readonly isName: boolean,
  ) {}

  /** Understands a pattern, or says in words why it is none. */
  static of(pattern: string): Glob | string {
    if (pattern === '' || Buffer.byteLength(pattern) > MAX_LENGTH) return `must have 1 to ${MAX_LENGTH} bytes`;
    const all = expanded(pattern);
    if (typeof all === 'string') return all;
    const alternatives: Part[][] = [];
    let isName = true;
    for (const one of all) {
      const parts = one.split('/').filter((part) => part !== '.');
      if (parts.includes('..') || one.startsWith('/')) return 'is about names beneath `path`; it cannot lead out of it';
      isName &&= parts.length === 1;
      const understood = parts.filter((part) => part !== '').map(partOf);
      const fault = understood.find((part) => typeof part === 'object' && 'fault' in part);
      if (fault) return (fault as { fault: string }).fault;
      alternatives.push(understood as Part[]);
    }
    return new Glob(alternatives, isName);
  }

  /** Tells whether a path, relative to the folder that is searched, is one of those that are meant. */
  matches(path: string): boolean {
    const names = this.isName ? [path.slice(path.lastIndexOf('/') + 1)] : path.split('/');
    return this.alternatives.some((parts) => matchesParts(parts, names));
  }
}

function partOf(part: string): Part | { fault: string } {
  if (part === '**') return 'any-folders';
  const tokens: Token[] = [];
  const letters = [...part];
  for (let i = 0; i < letters.length; i += 1) {
    const letter = letters[i] ?? '';
    if (letter === '*') tokens.push('any');
    else if (letter === '?') tokens.push('any-one');
    else if (letter === '\\') {
      const escaped = letters[(i += 1)];
      if (escaped === undefined) return { fault: 'ends in a backslash' };
      tokens.push({ one: escaped });
    } else if (letter === '[') {
      const set = setFrom(letters, i + 1);
      if (!set) return { fault: 'has a `[` without a `]`' };
      tokens.push(set.token);
      i = set.end;
    } else tokens.push({ one: letter });
  }
  return tokens;
}

/** Reads a set behind its `[`; `end` is where its `]` stands. */
function setFrom(letters: readonly string[], from: number): { token: Token; end: number } | undefined {
  const ranges: [string, string][] = [];
  const isNot = letters[from] === '!' || letters[from] === '^';
  let i = isNot ? from + 1 : from;
  for (; i < letters.length; i += 1) {
    const first = letters[i] ?? '';
    if (first === ']' && ranges.length > 0) return { token: { ranges, isNot }, end: i };
    const last = letters[i + 1] === '-' ? letters[i + 2] : undefined;
    if (last !== undefined && last !== ']') {
      ranges.push([first, last]);
      i += 2;
    } else ranges.push([first, first]);
  }
  return undefined;
}

/** Replaces braces by all that they stand for. */
function expanded(pattern: string): string[] | string {
  const open = [pattern];
  const done: string[] = [];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    const close = one.indexOf('}');
    if (close < 0) {
      if (one.includes('{')) return 'has a `{` without a `}`';
      done.push(one);
      continue;
    }
    // The innermost.
    const start = one.lastIndexOf('{', close);
    if (start < 0) return 'has a `}` without a `{`';
    const [before, after] = [one.slice(0, start), one.slice(close + 1)];
    for (const middle of one.slice(start + 1, close).split(',')) open.push(before + middle + after);
    if (open.length + done.length > MAX_ALTERNATIVES) return `stands for more than ${MAX_ALTERNATIVES} patterns`;
  }
  return done;
}

/** In a table, so that no pattern takes longer than its length times that of the path. */
function matchesParts(parts: readonly Part[], names: readonly string[]): boolean {
  // Whether the parts so far can stand for the first so many names.
  let reached = names.map(() => false);
  reached.unshift(true);
  for (const part of parts) {
    const next = reached.map(() => false);
    if (part === 'any-folders') {
      const first = reached.indexOf(true);
      if (first >= 0) next.fill(true, first);
    } else {
      names.forEach((name, i) => {
        next[i + 1] = (reached[i] ?? false) && matchesName(part, [...name]);
      });
    }
    reached = next;
  }
  return reached[names.length] ?? false;
}

function matchesName(tokens: readonly Token[], letters: readonly string[]): boolean {
  let [i, j] = [0, 0];
  // Where the last `*` stands, and the first letter that it does not stand for.
  let star: { at: number; from: number } | undefined;
  for (;;) {
    const [token, letter] = [tokens[j], letters[i]];
    if (token === 'any') {
      star = { at: j, from: i };
      j += 1;
    } else if (token !== undefined && letter !== undefined && isOf(token, letter)) {
      [i, j] = [i + 1, j + 1];
    } else if (token === undefined && letter === undefined) {
      return true;
    } else if (star && star.from < letters.length) {
      // It stands for one letter more.
      star.from += 1;
      [i, j] = [star.from, star.at + 1];
    } else {
      return false;
    }
  }
}

function isOf(token: Exclude<Token, 'any'>, letter: string): boolean {
  if (token === 'any-one') return true;
  if ('one' in token) return token.one === letter;
  return token.ranges.some(([first, last]) => first <= letter && letter <= last) !== token.isNot;
}
