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
  private readonly cancelled = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.cancelled.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.cancelled.fire();
  }
  dispose(): void {}
}

export const settings = { home: '' };

export const workspace = {
  getConfiguration: () => ({ get: () => settings.home }),
  onDidChangeConfiguration: () => new Disposable(() => {}),
};

export const extensions = { getExtension: () => undefined };

export class ThemeIcon {
  constructor(readonly id: string) {}
}

/** A terminal of the editor's. */
export interface Shown {
  readonly name: string;
  readonly pty: object;
  isGone: boolean;
  dispose(): void;
}

export const ProgressLocation = { Notification: 15 };

/** A notification that is there until its task ends, or until the person puts it aside. */
export interface Notification {
  readonly title: string;
  readonly aside: CancellationTokenSource;
}

type Task = (progress: { report(step: object): void }, token: CancellationTokenSource['token']) => Promise<void>;

/** What the window answers; a ghost's window never does. */
export const window = {
  isThere: true,
  terminals: [] as Shown[],
  activeTerminal: undefined as Shown | undefined,
  createTerminal({ name, pty }: { name: string; pty: object }): Shown {
    const shown = { name, pty, isGone: false, dispose: (): void => void (shown.isGone = true) };
    window.terminals.push(shown);
    return shown;
  },
  notifications: new Set<Notification>(),
  async withProgress({ title }: { title: string }, task: Task): Promise<void> {
    const one = { title, aside: new CancellationTokenSource() };
    window.notifications.add(one);
    await task({ report: () => {} }, one.aside.token);
    window.notifications.delete(one);
  },
};

export const commands = {
  executeCommand: (): Promise<void> => (window.isThere ? Promise.resolve() : new Promise(() => {})),
};
