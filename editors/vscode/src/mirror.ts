// What the daemon knows of the unsaved texts here. It keeps them for the day this editor crashes: so it gets each text
// whole once, and after that only what changes.

import { toldSpan } from './place';
import type { OpenBuffer } from './protocol';
import type { Changed, Text, Texts } from './texts';

interface Told {
  readonly version: number;
  readonly isDirty: boolean;
  /** Whether the daemon has the text of this version. */
  readonly isKnown: boolean;
}

/** Edits that are told of one change, and the characters in them. Of more the whole text is told. */
const MAX_EDITS = 32;
const MAX_EDIT_CHARACTERS = 8 << 10;

/**
 * The largest text that is told; a larger one is lost if this editor is. All texts of a state together are not larger.
 */
const MAX_CHARACTERS = 6 << 20;

export class Mirror {
  private readonly told = new Map<string, Told>();

  constructor(private readonly texts: Texts) {}

  /** All that is open. */
  state(): OpenBuffer[] {
    this.told.clear();
    let left = MAX_CHARACTERS;
    return this.texts.all().map((text) => {
      const { path, version, isDirty } = text;
      const content = isDirty ? text.document.getText() : '';
      const isKnown = isDirty && content.length <= left;
      if (isKnown) left -= content.length;
      this.told.set(path, { version, isDirty, isKnown });
      return { path, version, is_dirty: isDirty, ...(isKnown ? { text: content } : {}) };
    });
  }

  /** What is told of a change. */
  changed({ text, base, edits, by, reason }: Changed): Record<string, unknown> {
    const before = this.told.get(text.path);
    const length = edits.reduce((sum, edit) => sum + edit.newText.length, 0);
    const isShort =
      base !== undefined && edits.length <= MAX_EDITS && length <= MAX_EDIT_CHARACTERS && isInOrder(edits);
    const data: Record<string, unknown> = { version: text.version, is_dirty: text.isDirty, reason };
    if (by !== undefined) data['by'] = by;
    if (isShort) {
      data['base_version'] = base;
      data['edits'] = edits.map(({ range, newText }) => ({ range: toldSpan(range), new_text: newText }));
    }
    const isFollowed = isShort && before?.isKnown === true && before.version === base;
    const isKnown = this.add(data, text, isFollowed);
    this.told.set(text.path, { version: text.version, isDirty: text.isDirty, isKnown });
    return data;
  }

  /** What is told of a text that became unsaved or saved without another change; `undefined` if that is known. */
  dirtied(text: Text): Record<string, unknown> | undefined {
    if ((this.told.get(text.path)?.isDirty ?? false) === text.isDirty) return undefined;
    const data: Record<string, unknown> = { version: text.version, is_dirty: text.isDirty, reason: 'edit' };
    const isKnown = this.add(data, text, false);
    this.told.set(text.path, { version: text.version, isDirty: text.isDirty, isKnown });
    return data;
  }

  saved(text: Text): void {
    this.told.set(text.path, { version: text.version, isDirty: text.isDirty, isKnown: false });
  }

  closed(path: string): void {
    this.told.delete(path);
  }

  /** Adds the whole text where the daemon needs it. Returns whether it knows the text then. */
  private add(data: Record<string, unknown>, text: Text, isFollowed: boolean): boolean {
    if (!text.isDirty) return false;
    if (isFollowed) return true;
    const content = text.document.getText();
    if (content.length > MAX_CHARACTERS) return false;
    data['text'] = content;
    return true;
  }
}

/** Whether edits are told from the last to the first: then each is about the text before all of them. */
function isInOrder(edits: Changed['edits']): boolean {
  return edits.every((edit, i) => {
    const next = edits[i + 1];
    if (!next) return true;
    const [end, start] = [next.range.end, edit.range.start];
    return end.line < start.line || (end.line === start.line && end.character <= start.character);
  });
}
