// The versions that are told. The editor counts a text's versions from one again each time it is opened; a version that
// was told names one text and never comes twice for another.

interface Known {
  /** The editor's document, by identity. */
  document: object | undefined;
  base: number;
  told: number;
  /** Of the text, when it was closed. */
  closedAs: string | undefined;
}

/**
 * Texts that are remembered. Beyond it the oldest that is closed is forgotten; the others then begin above what it had.
 */
const MAX_KNOWN = 4_096;

/** 2020 began. */
const EPOCH_MS = 1_577_836_800_000;

export class Versions {
  private readonly known = new Map<string, Known>();
  private floor: number;

  /** Begins where no window before this one has been: it would have had to make a change every millisecond. */
  constructor(nowMs: number) {
    this.floor = Math.max(1, nowMs - EPOCH_MS);
  }

  /** The version of a text that is open. The digest is only asked for if it has been opened again. */
  told(path: string, document: object, version: number, digest: () => string): number {
    let known = this.known.get(path);
    if (!known) {
      this.makeRoom();
      known = { document, base: this.floor - version, told: this.floor, closedAs: undefined };
      this.known.set(path, known);
    } else if (known.document !== document) {
      const isSame = known.closedAs !== undefined && known.closedAs === digest();
      known.base = known.told + (isSame ? 0 : 1) - version;
      known.document = document;
      known.closedAs = undefined;
    }
    known.told = known.base + version;
    return known.told;
  }

  /** Notes that a text was closed, and as what. If it is opened as the same, its version is the same. */
  closed(path: string, document: object, digest: () => string): void {
    const known = this.known.get(path);
    if (known?.document !== document) return;
    known.document = undefined;
    known.closedAs = digest();
  }

  private makeRoom(): void {
    if (this.known.size < MAX_KNOWN) return;
    for (const [path, known] of this.known) {
      if (known.document !== undefined) continue;
      this.floor = Math.max(this.floor, known.told + 1);
      this.known.delete(path);
      return;
    }
  }
}
