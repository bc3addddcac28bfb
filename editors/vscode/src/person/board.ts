// What the daemon has laid before the person, and the way back: their words, and what became of each. It decides nothing.

import * as vscode from 'vscode';
import type { Line } from '../line';
import type { Message } from '../protocol';
import { within } from '../wait';
import {
  NOTHING,
  object,
  readSnapshot,
  text,
  type Json,
  type RequestView,
  type ConfirmationView,
  type Snapshot,
} from './views';
import { visible } from './words';

/** How long the daemon has for an answer. After that nobody here knows what became of it, and it is said so. */
const PATIENCE_MS = 15_000;
/** Words that may be on their way at a time; a person has not said more. Beyond it they are refused here. */
const MAX_WAITING = 64;
/** Agents whose names are still known when their grants are over; beyond it the oldest is forgotten. */
const MAX_NAMES = 256;

/** Less than was asked for, if it is said. */
export interface Narrowed {
  readonly scopes?: readonly string[];
  readonly roots?: readonly string[];
  readonly seconds?: number;
  readonly confirmChanges?: boolean;
}

/** The daemon did not take it; `message` is for the person. */
export class Objection extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class Board implements vscode.Disposable {
  private shown: Snapshot = NOTHING;
  private connected = false;
  private told = false;
  private said = 0;
  private readonly names = new Map<string, string>();
  private readonly waiting = new Map<number, (answer: Json | Objection) => void>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly parts: vscode.Disposable[];

  /** After each change, and when the connection comes or goes. */
  readonly onChange = this.changed.event;

  constructor(private readonly line: Line) {
    this.connected = line.state.is === 'connected';
    this.parts = [
      this.changed,
      line.onMessage('desk', (message) => this.show(readSnapshot(object(message)))),
      line.onMessage('decided', (message) => this.answered(object(message))),
      line.onState(() => this.stateChanged()),
    ];
  }

  get snapshot(): Snapshot {
    return this.shown;
  }

  get isConnected(): boolean {
    return this.connected;
  }

  /** Whether the daemon has told what there is. One that lets no editor decide tells nothing. */
  get isTold(): boolean {
    return this.told;
  }

  /** Whose session it is; a grant may be over and its edits not. */
  nameOf(session: string): string {
    return this.names.get(session) ?? 'an agent';
  }

  allow(request: RequestView, narrowed: Narrowed): Promise<void> {
    return this.say({
      type: 'decide',
      request_id: request.id,
      approve: true,
      ...(narrowed.scopes && { approved_scopes: narrowed.scopes }),
      ...(narrowed.roots && { approved_roots: narrowed.roots }),
      ...(narrowed.seconds !== undefined && { ttl_seconds: narrowed.seconds }),
      ...(narrowed.confirmChanges !== undefined && { confirm_changes: narrowed.confirmChanges }),
    });
  }

  deny(request: RequestView, reason?: string): Promise<void> {
    return this.say({ type: 'decide', request_id: request.id, approve: false, ...(reason && { reason }) });
  }

  /** The digest is that of the view: of what the person saw, whatever the daemon has by now. */
  confirm(view: ConfirmationView, approve: boolean, reason?: string): Promise<void> {
    const { id, digest } = view;
    return this.say({ type: 'decide', confirmation_id: id, digest, approve, ...(reason && { reason }) });
  }

  revoke(session: string): Promise<void> {
    return this.say({ type: 'revoke', session_id: session });
  }

  dispose(): void {
    this.forget(new Objection('lost', 'the window closes'));
    for (const part of this.parts) part.dispose();
  }

  private async say(word: Message): Promise<void> {
    if (!this.connected) throw new Objection('lost', "Prism's daemon cannot be reached just now");
    if (this.waiting.size >= MAX_WAITING) throw new Objection('too_many', 'too much waits for the daemon; try again');
    const id = ++this.said;
    const told = new Promise<Json | Objection>((done) => {
      this.waiting.set(id, done);
      this.line.send({ ...word, id });
    });
    const answer = await within(PATIENCE_MS, told);
    this.waiting.delete(id);
    if (!answer) throw new Objection('timed_out', 'the daemon did not answer; look at it again');
    if (answer instanceof Objection) throw answer;
    if (answer['status'] !== 'ok') {
      const error = object(answer['error']);
      throw new Objection(text(error['code']) || 'failed', text(error['message']) || 'the daemon refused it');
    }
  }

  private answered(message: Json): void {
    const id = message['id'];
    if (typeof id === 'number') this.waiting.get(id)?.(message);
  }

  private show(snapshot: Snapshot): void {
    this.shown = snapshot;
    this.told = true;
    for (const { id, agent } of snapshot.grants) this.names.set(id, visible(agent));
    for (const id of [...this.names.keys()].slice(0, -MAX_NAMES)) this.names.delete(id);
    this.changed.fire();
  }

  private stateChanged(): void {
    const connected = this.line.state.is === 'connected';
    if (connected === this.connected) return;
    this.connected = connected;
    if (!connected) {
      this.forget(new Objection('lost', 'the connection was lost; look at it again when Prism is back'));
      // What was shown may have been decided meanwhile; the daemon tells anew.
      this.shown = NOTHING;
      this.told = false;
    }
    this.changed.fire();
  }

  private forget(why: Objection): void {
    for (const done of this.waiting.values()) done(why);
    this.waiting.clear();
  }
}
