// The arguments of a command, each of the type that it has to be, and none that nobody knows: an agent that has
// mistaken a name should learn of it, not wonder why nothing came of it.

import type { Place, Span } from './place';
import { wrong } from './refusal';

const MOST_LINES = 0xffff_ffff;

export class Args {
  private readonly left: Map<string, unknown>;
  /** All that were asked for, to tell whoever gave another. */
  private readonly known: string[] = [];

  constructor(given: Record<string, unknown>) {
    this.left = new Map(Object.entries(given));
  }

  /** The members of an argument that is an object. */
  static members(name: string, value: unknown): Args {
    if (kindOf(value) !== 'an object') throw wrong(`\`${name}\` must be an object, not ${kindOf(value)}`);
    return new Args(value as Record<string, unknown>);
  }

  /** Takes an argument out; `null` is as good as none. */
  take(name: string): unknown {
    this.known.push(name);
    const value = this.left.get(name);
    this.left.delete(name);
    return value === null ? undefined : value;
  }

  text(name: string): string {
    const text = this.maybeText(name);
    if (text === undefined) throw wrong(`\`${name}\` is missing: a string`);
    return text;
  }

  maybeText(name: string): string | undefined {
    const value = this.take(name);
    if (value === undefined || typeof value === 'string') return value;
    throw wrong(`\`${name}\` must be a string, not ${kindOf(value)}`);
  }

  /** One of a few words; the first if none is given. */
  choice<Word extends string>(name: string, words: readonly [Word, ...Word[]]): Word {
    const value = this.maybeText(name);
    if (value === undefined) return words[0];
    const found = words.find((word) => word === value);
    if (found === undefined) {
      const all = words.map((word) => JSON.stringify(word));
      const listed = [all.slice(0, -1).join(', '), all.at(-1)].filter(Boolean).join(' or ');
      throw wrong(`\`${name}\` is ${listed}, not ${JSON.stringify(value)}`);
    }
    return found;
  }

  flag(name: string): boolean {
    const value = this.take(name);
    if (value === undefined) return false;
    if (typeof value === 'boolean') return value;
    throw wrong(`\`${name}\` must be true or false, not ${kindOf(value)}`);
  }

  /** A whole number within bounds. */
  number(name: string, least: number, most: number): number | undefined {
    const value = this.take(name);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    const told = typeof value === 'number' ? String(value) : kindOf(value);
    throw wrong(`\`${name}\` must be a whole number from ${least} to ${most}, not ${told}`);
  }

  /** A place in a text. */
  position(name: string): Place | undefined {
    const value = this.take(name);
    return value === undefined ? undefined : placeOf(name, value);
  }

  /** Two places. */
  range(name: string): Span | undefined {
    const value = this.take(name);
    return value === undefined ? undefined : spanOf(name, value);
  }

  list(name: string): unknown[] | undefined {
    const value = this.take(name);
    if (value === undefined || Array.isArray(value)) return value;
    throw wrong(`\`${name}\` must be an array, not ${kindOf(value)}`);
  }

  /** What a file is to hold. */
  content(name: string): Uint8Array | undefined {
    const content = this.maybeText(name);
    const encoding = this.maybeText('encoding');
    if (content === undefined) return undefined;
    if (encoding === undefined || encoding === 'utf-8') return Buffer.from(content, 'utf8');
    if (encoding !== 'base64') throw wrong(`\`encoding\` is "utf-8" or "base64", not ${JSON.stringify(encoding)}`);
    const bytes = Buffer.from(content, 'base64');
    // Node passes over what is no base64; only what it would write itself is taken.
    if (bytes.toString('base64') !== content) {
      throw wrong(`\`${name}\` is not base64 (the standard alphabet, padded, no line breaks)`);
    }
    return bytes;
  }

  /** Refuses what is left. To be called before anything is done. */
  done(): void {
    for (const name of this.left.keys()) {
      const known = this.known.map((one) => `\`${one}\``).join(', ');
      throw wrong(`there is no argument ${JSON.stringify(name)}; ${known ? `it takes ${known}` : 'it takes none'}`);
    }
  }
}

export function placeOf(name: string, value: unknown): Place {
  const place = Args.members(name, value);
  const number = (member: string): number => {
    const found = place.number(member, 0, MOST_LINES);
    if (found === undefined) throw wrong(`\`${name}\` has no \`${member}\``);
    return found;
  };
  const found = { line: number('line'), character: number('character') };
  place.done();
  return found;
}

export function spanOf(name: string, value: unknown): Span {
  const ends = Args.members(name, value);
  const endOf = (end: string): Place => {
    const place = ends.take(end);
    if (place === undefined) throw wrong(`\`${name}\` has no \`${end}\``);
    return placeOf(end, place);
  };
  const found = { start: endOf('start'), end: endOf('end') };
  ends.done();
  return found;
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'an array';
  switch (typeof value) {
    case 'boolean':
      return 'a boolean';
    case 'number':
      return 'a number';
    case 'string':
      return 'a string';
    default:
      return 'an object';
  }
}
