// Files as the disk has them, whole.

import { readFile, stat } from 'node:fs/promises';
import { Refusal, wrong } from './refusal';

/** The largest file that is read or written as a whole. */
export const MAX_BYTES = 5 << 20;

/** What a file holds; `undefined` if it is not there. Refused if it is no file, or too large. */
export async function onDisk(path: string): Promise<Uint8Array | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw wrong(`${JSON.stringify(path)}: it is a folder`);
    if (!found.isFile()) throw wrong(`${JSON.stringify(path)}: it is no regular file`);
    // It may grow while it is read.
    const bytes = found.size > MAX_BYTES ? undefined : await readFile(path);
    if (bytes === undefined || bytes.length > MAX_BYTES) {
      const message = `${JSON.stringify(path)} has more than ${MAX_BYTES} bytes; read a part of it with a command`;
      throw new Refusal('too_large', message);
    }
    return bytes;
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new Refusal('failed', `${JSON.stringify(path)} cannot be read: ${Refusal.of(error).message}`);
  }
}

/** Refuses what is too large to be a file here, and what no text can hold. */
export function checkText(text: string): void {
  checkSize(Buffer.byteLength(text));
  if (text.includes('\0')) throw wrong('a text cannot hold a NUL');
}

export function checkSize(bytes: number): void {
  if (bytes <= MAX_BYTES) return;
  throw new Refusal('too_large', `a file of ${bytes} bytes; at most ${MAX_BYTES} can be written`);
}
