// Whose doing it is that the window shows something: the editor tells what happened, not who asked for it.

/** How long after a command something in the window may be its doing. A window under load takes its time. */
const LASTS_MS = 10_000;
/** Doings that are remembered. Beyond it all are forgotten, and what they bring about is nobody's. */
const MAX_DOINGS = 64;

interface Deed {
  readonly by: string;
  readonly until: number;
}

export class Doing {
  private readonly deeds = new Map<string, Deed>();

  /**
   * Notes that a session does something to a path (or to the window) that an event will tell of. What is returned ends
   * that, and says whether no event has come.
   */
  note(event: string, path: string, by: string): () => boolean {
    const [key, deed] = [keyOf(event, path), { by, until: Date.now() + LASTS_MS }];
    if (this.deeds.size >= MAX_DOINGS) this.deeds.clear();
    this.deeds.set(key, deed);
    return () => this.deeds.get(key) === deed && this.deeds.delete(key);
  }

  /** Whose doing an event is, if it is a session's. It is told once. */
  take(event: string, path: string): { by?: string } {
    const key = keyOf(event, path);
    const deed = this.deeds.get(key);
    this.deeds.delete(key);
    return deed && deed.until >= Date.now() ? { by: deed.by } : {};
  }
}

function keyOf(event: string, path: string): string {
  return `${event}\n${path}`;
}
