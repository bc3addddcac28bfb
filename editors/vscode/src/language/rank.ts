// How well a completion fits what was typed. Servers leave it to the editor to choose.

/** The word at the end of what stands before a place, in small letters. */
export function typedIn(before: string): string {
  return (/[\p{L}\p{N}_$]*$/u.exec(before)?.[0] ?? '').toLowerCase();
}

/** How well a word in small letters fits: the less the better; `undefined` if it does not. */
export function rankOf(word: string, typed: string): number | undefined {
  if (word.startsWith(typed)) return 0;
  if (word.includes(typed)) return 1;
  let from = 0;
  for (const letter of typed) {
    const at = word.indexOf(letter, from);
    if (at < 0) return undefined;
    from = at + letter.length;
  }
  return 2;
}
