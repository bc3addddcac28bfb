// What a text or a file is known by, and what counts as a text.

import { createHash } from 'node:crypto';

/** Returns the SHA-256 in hex; of a text, that of its UTF-8. */
export function digestOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Returns the text if it is one that a person could read: UTF-8, and no NUL. A mark at its beginning is no part of it.
 */
export function asText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** A text whatever its line breaks: an editor has one kind of them in a text, files may have several. */
export function unbroken(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

/** Whether two texts differ in nothing but their line breaks. */
export function isSameText(one: string, other: string): boolean {
  return one === other || unbroken(one) === unbroken(other);
}
