// What is told to the daemon: numbered from one in each connection, not more than it listens to, and what moves all the
// time only as often as somebody could follow.

import type * as vscode from 'vscode';
import type { FromPlugin, OpenBuffer } from './protocol';

/** Sends a message; `false` if it cannot be sent now. */
export type Sender = (message: FromPlugin) => boolean;

/** Events a second. The daemon listens to 500; what is beyond is dropped here, and a whole state follows. */
const MAX_EVENTS_PER_SECOND = 400;

/** How often something that moves all the time is told: at once, and then what it has come to since. */
const MOVES_EVERY_MS = 20;

/** Things that move and are told once more later. Beyond it they are told at once. */
const MAX_MOVING = 256;

/** How long after something was dropped the state is sent. */
const CATCH_UP_MS = 500;

interface Moving {
  timer: NodeJS.Timeout;
  next: (() => void) | undefined;
}

export class Voice implements vscode.Disposable {
  private sender: Sender | undefined;
  private sequence = 0;
  private second = 0;
  private toldThisSecond = 0;
  private readonly moving = new Map<string, Moving>();
  private behind: NodeJS.Timeout | undefined;

  /** `buffers` lists all that is open, for the state. */
  constructor(private readonly buffers: () => OpenBuffer[]) {}

  dispose(): void {
    this.disconnected();
  }

  /** Begins anew: what was told on another connection, this one does not know. */
  connected(sender: Sender): void {
    this.disconnected();
    this.sender = sender;
    this.sequence = 0;
    this.tellState();
  }

  disconnected(): void {
    this.sender = undefined;
    clearTimeout(this.behind);
    this.behind = undefined;
    for (const { timer } of this.moving.values()) clearTimeout(timer);
    this.moving.clear();
  }

  /** Tells all that is open. */
  tellState(): void {
    this.sender?.({ type: 'state', seq: this.sequence, buffers: this.buffers() });
  }

  /** Tells that something has happened. With nobody there it is told to nobody: the state is told to who comes. */
  tell(event: string, path: string | undefined, data: Record<string, unknown> = {}): void {
    if (!this.sender) return;
    if (!this.hasRoom()) return this.catchUp();
    const seq = this.sequence + 1;
    const sent = this.sender({ type: 'event', event, seq, data: path === undefined ? data : { path, ...data } });
    if (sent) this.sequence = seq;
    else this.catchUp();
  }

  /** The same of what moves all the time: the first is told at once, of those right after it only the last. */
  tellMoving(event: string, path: string, data: () => Record<string, unknown>): void {
    const key = `${event}\n${path}`;
    const tell = (): void => this.tell(event, path, data());
    const moving = this.moving.get(key);
    if (moving) {
      moving.next = tell;
      return;
    }
    tell();
    if (this.moving.size < MAX_MOVING) this.rest(key);
  }

  private rest(key: string): void {
    const timer = setTimeout(() => {
      const next = this.moving.get(key)?.next;
      this.moving.delete(key);
      if (!next) return;
      next();
      this.rest(key);
    }, MOVES_EVERY_MS);
    this.moving.set(key, { timer, next: undefined });
  }

  private hasRoom(): boolean {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.second) [this.second, this.toldThisSecond] = [second, 0];
    this.toldThisSecond += 1;
    return this.toldThisSecond <= MAX_EVENTS_PER_SECOND;
  }

  /** Something was not told. The state says what it came to, once there is room again. */
  private catchUp(): void {
    this.behind ??= setTimeout(() => {
      this.behind = undefined;
      const sent = this.sender?.({ type: 'state', seq: this.sequence, buffers: this.buffers() });
      if (sent === false) this.catchUp();
    }, CATCH_UP_MS);
  }
}
