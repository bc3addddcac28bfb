// What is to be run, as an agent says it: a line for the shell, or a program and its arguments; where; and with what besides.

import { stat } from 'node:fs/promises';

import type { Desk } from '../desk';
import { Refusal } from '../refusal';
import { isOwn } from './child';

/** Bytes of words and additions together; a person has to read it. */
const MAX_WORDS = 128 << 10;

/** Letters of a command that an event has. */
const MAX_LINE = 500;

export function words(given: unknown): string[] {
  if (given === undefined) {
    throw new Refusal('bad_arguments', '`command` is missing: a line for the shell, or a program and its arguments');
  }
  const isList = Array.isArray(given) && given.every((word): word is string => typeof word === 'string');
  if (typeof given !== 'string' && !isList) {
    throw new Refusal('bad_arguments', '`command` must be a string, or an array of strings');
  }
  const found: string[] = typeof given === 'string' ? ['sh', '-c', given] : given;
  if (typeof given === 'string' ? given.trim() === '' : !found[0]) {
    throw new Refusal('bad_arguments', '`command` is empty');
  }
  if (found.some((word) => word.includes('\0'))) throw new Refusal('bad_arguments', '`command` has a NUL in it');
  return found;
}

export function additions(given: unknown): Record<string, string> {
  if (given === undefined) return {};
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Refusal('bad_arguments', '`env` must be an object');
  }
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const shown = JSON.stringify(name);
    if (typeof value !== 'string') throw new Refusal('bad_arguments', `\`env\`: ${shown} must be a string`);
    if (name === '' || /[=\0]/.test(name) || value.includes('\0')) {
      throw new Refusal('bad_arguments', `\`env\`: ${shown} cannot be a variable`);
    }
    if (isOwn(name)) throw new Refusal('bad_arguments', `\`env\`: ${shown} is Prism's own`);
    env[name] = value;
  }
  return env;
}

export function refuseLong(words: readonly string[], env: Readonly<Record<string, string>>): void {
  const parts = [...words, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)];
  const bytes = parts.reduce((sum, part) => sum + Buffer.byteLength(part) + 1, 0);
  if (bytes > MAX_WORDS) {
    throw new Refusal('too_large', `a command of ${bytes} bytes; at most ${MAX_WORDS} are allowed`);
  }
}

/** As one would type it, more or less. */
export function line(words: readonly string[]): string {
  const isShell = words.length === 3 && words[0] === 'sh' && words[1] === '-c';
  return (isShell ? (words[2] ?? '') : words.join(' ')).slice(0, MAX_LINE);
}

/** The folder that `cwd` names, in the roots; without it the first of them. */
export async function folder(desk: Desk, cwd: string | undefined): Promise<string> {
  const path = await desk.roots.real(cwd ?? '.');
  const about = await stat(path).catch(() => undefined);
  if (about === undefined) throw new Refusal('not_found', `there is no folder ${path}`);
  if (!about.isDirectory()) throw new Refusal('bad_arguments', `\`cwd\` must be a folder, and ${path} is none`);
  return path;
}
