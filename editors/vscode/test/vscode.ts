// As much of the editor's API as the parts under test touch.

export type Listener<T> = (value: T) => void;

export class Disposable {
  constructor(private readonly end: () => void) {}
  static from(...all: { dispose(): void }[]): Disposable {
    return new Disposable(() => all.forEach((one) => one.dispose()));
  }
  dispose(): void {
    this.end();
  }
}

export class EventEmitter<T> {
  private readonly listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>): Disposable => {
    this.listeners.add(listener);
    return new Disposable(() => this.listeners.delete(listener));
  };
  fire(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export class CancellationTokenSource {
  readonly token = { isCancellationRequested: false };
  cancel(): void {
    this.token.isCancellationRequested = true;
  }
  dispose(): void {}
}

export const settings = { home: '' };

export const workspace = {
  getConfiguration: () => ({ get: () => settings.home }),
  onDidChangeConfiguration: () => new Disposable(() => {}),
};

export const extensions = { getExtension: () => undefined };

/** What the window answers; a ghost's window never does. */
export const window = { isThere: true };

export const commands = {
  executeCommand: (): Promise<void> => (window.isThere ? Promise.resolve() : new Promise(() => {})),
};
