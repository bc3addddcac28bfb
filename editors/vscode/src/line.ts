// The connection to the daemon: dialled, registered, kept, and dialled again when it is lost. That there is no daemon
// is no error, and nothing here ever asks the person anything: it tries again, and tells its state to who shows it.

import WebSocket from 'ws';
import * as vscode from 'vscode';
import { Commands } from './commands';
import type { Desk } from './desk';
import { type Found, find, Lookout } from './find';
import { isWindowAlive } from './pulse';
import { type FromPlugin, type Message, PROTOCOL, type Register, type Registered, type ToPlugin } from './protocol';
import type { Self } from './self';
import type { Verb } from './verbs';

export type LineState =
  | { readonly is: 'off' }
  | { readonly is: 'connecting' }
  | { readonly is: 'connected'; readonly name: string; readonly version: string };

/**
 * How long to wait before dialling again: twice as long each time, and a little by chance, so that windows do not come
 * all at once.
 */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 10_000;
/** How long dialling and registering may take. */
const DIAL_WITHIN_MS = 5_000;
const REGISTERED_WITHIN_MS = 10_000;
/** What the daemon may be behind in reading. Beyond it events are dropped, and the state follows. */
const MAX_UNSENT_BYTES = 8 << 20;
/** The largest message that the daemon takes; for a larger one it would close the connection. */
const MAX_SENT_BYTES = 16 << 20;
/** The largest message of the daemon's: a text at the largest, and its wrapping. */
const MAX_MESSAGE_BYTES = 32 << 20;

export class Line implements vscode.Disposable {
  private socket: WebSocket | undefined;
  private now: LineState = { is: 'off' };
  private tries = 0;
  private timer: NodeJS.Timeout | undefined;
  private isEnded = false;
  private isDialling = false;
  private desk: Desk | undefined;
  private capabilities: readonly string[] = [];
  private commands: Commands | undefined;
  private lookout: Lookout | undefined;
  private readonly states = new vscode.EventEmitter<LineState>();
  private readonly heard = new vscode.EventEmitter<Message>();
  private readonly subscriptions: vscode.Disposable[] = [];
  /** Members that parts of the extension add to the registration. */
  private readonly additions: Partial<Register> = {};
  readonly onState = this.states.event;

  constructor(private readonly self: Self) {}

  /** Begins to look for the daemon, to offer it these verbs. */
  start(desk: Desk, verbs: ReadonlyMap<string, Verb>): void {
    this.desk = desk;
    this.capabilities = [...verbs.keys()];
    this.commands = new Commands(desk, verbs, (message) => this.send(message));
    this.subscriptions.push(
      (this.lookout = new Lookout(() => {
        // It may still be about to write what is read.
        this.tries = 0;
        this.dialSoon(0);
      })),
      // The roots are said once in a connection.
      desk.roots.onChange(() => this.again()),
      this.onState((state) => {
        if (state.is === 'connected') desk.voice.connected((message) => this.sendIfRead(message));
        else desk.voice.disconnected();
      }),
    );
    this.dialSoon(0);
  }

  dispose(): void {
    this.isEnded = true;
    clearTimeout(this.timer);
    this.socket?.close(1000);
    this.lost();
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.states.dispose();
    this.heard.dispose();
  }

  get state(): LineState {
    return this.now;
  }

  /** Says more in the registration; the connection is made anew if there is one. */
  registerWith(members: Partial<Register>): void {
    Object.assign(this.additions, members);
    if (this.socket) this.again();
  }

  /** Listens for messages of a type that the line itself does not know. */
  onMessage(type: string, listener: (message: Message) => void): vscode.Disposable {
    return this.heard.event((message) => {
      if (message.type === type) listener(message);
    });
  }

  /** Sends a message; `false` if there is no connection, or it is too large. */
  send(message: FromPlugin | Message): boolean {
    if (this.now.is !== 'connected' || this.socket?.readyState !== WebSocket.OPEN) return false;
    const text = JSON.stringify(message);
    if (text.length > MAX_SENT_BYTES / 2 && Buffer.byteLength(text) > MAX_SENT_BYTES) {
      this.desk?.log.warn(`A message of ${Buffer.byteLength(text)} bytes was not sent: ${message.type}`);
      return false;
    }
    this.socket.send(text);
    return true;
  }

  /** The same of what may be lost: not if the daemon does not read. */
  private sendIfRead(message: FromPlugin): boolean {
    return (this.socket?.bufferedAmount ?? 0) <= MAX_UNSENT_BYTES && this.send(message);
  }

  /** Makes the connection anew. */
  again(): void {
    this.socket?.close(1000);
    this.lost();
    this.dialSoon(0);
  }

  private dialSoon(afterMs: number): void {
    if (this.isEnded || this.now.is === 'connected') return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.dial(), afterMs);
  }

  private waitMs(): number {
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.tries, LONGEST_WAIT_MS);
    this.tries = Math.min(this.tries + 1, 16);
    return wait * (0.75 + Math.random() * 0.5);
  }

  private async dial(): Promise<void> {
    if (this.isDialling || this.isEnded || this.socket) return;
    this.isDialling = true;
    try {
      const found = await find();
      if (!found || this.isEnded) return;
      this.lookout?.follow();
      this.tell({ is: 'connecting' });
      const socket = await this.open(found);
      if (this.isEnded) return socket.terminate();
      this.socket = socket;
      this.attend(socket);
    } catch (error) {
      this.desk?.log.debug(`No connection: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.isDialling = false;
      if (!this.socket) {
        this.tell({ is: 'off' });
        this.dialSoon(this.waitMs());
      }
    }
  }

  /** Dials by the socket, which only the daemon of this user can have made, and by port where that cannot be reached. */
  private async open(found: Found): Promise<WebSocket> {
    const path = `/plugin/${this.self.pluginId}`;
    const byPort = (): Promise<WebSocket> => this.openAt(`ws://127.0.0.1:${found.port}${path}`, found.token);
    if (!found.socket) return await byPort();
    return await this.openAt(`ws+unix:${found.socket}:${path}`, found.token).catch(byPort);
  }

  private openAt(address: string, token: string): Promise<WebSocket> {
    const socket = new WebSocket(address, {
      headers: { Authorization: `Bearer ${token}` },
      handshakeTimeout: DIAL_WITHIN_MS,
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
    });
    return new Promise((opened, failed) => {
      socket.once('open', () => opened(socket));
      socket.once('error', failed);
    });
  }

  private attend(socket: WebSocket): void {
    const late = setTimeout(() => socket.terminate(), REGISTERED_WITHIN_MS);
    socket.on('message', (data) => {
      if (socket !== this.socket) return;
      const message = parsed(String(data));
      if (message?.type === 'registered') clearTimeout(late);
      if (message) this.take(message);
    });
    socket.on('error', (error) => this.desk?.log.debug(`The connection failed: ${error.message}`));
    socket.on('close', (code) => {
      clearTimeout(late);
      if (socket !== this.socket) return;
      this.desk?.log.info(`The connection has ended (${code})`);
      this.lost();
      this.dialSoon(this.waitMs());
    });
    socket.send(JSON.stringify(this.registration()));
  }

  private registration(): Register {
    return {
      type: 'register',
      protocol: PROTOCOL,
      instance_id: this.self.instanceId,
      kind: this.self.kind,
      version: this.self.version,
      ui: true,
      pid: process.pid,
      started_at_ms: this.self.startedAtMs,
      roots: [...(this.desk?.roots.all ?? [])],
      capabilities: [...this.capabilities],
      ...this.additions,
    };
  }

  private take(message: Message): void {
    const known = message as unknown as ToPlugin;
    switch (known.type) {
      case 'registered':
        return this.registered(known);
      case 'cmd':
        return this.commands?.take(known);
      case 'cancel':
        return this.commands?.cancel(known.id);
      case 'ping':
        return void this.pong(known.id);
      case 'get_state':
        return this.desk?.voice.tellState();
      case 'error':
        return this.desk?.log.warn(`Prism: ${known.error.code}: ${known.error.message}`);
      default:
        return this.heard.fire(message);
    }
  }

  private registered(message: Registered): void {
    this.tries = 0;
    this.desk?.log.info(`Connected to Prism ${message.bridge_version} as ${message.assigned_id}`);
    this.tell({ is: 'connected', name: message.assigned_id, version: message.bridge_version });
  }

  private async pong(id: number): Promise<void> {
    const socket = this.socket;
    const ui = await isWindowAlive();
    if (socket === this.socket) this.send({ type: 'pong', id, ui });
  }

  /** Ends all that hung on the connection. */
  private lost(): void {
    this.socket = undefined;
    this.commands?.end();
    this.tell({ is: 'off' });
  }

  private tell(state: LineState): void {
    if (this.now.is === state.is && state.is !== 'connected') return;
    this.now = state;
    this.states.fire(state);
  }
}

function parsed(text: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(text);
    const type = (message as { type?: unknown } | null)?.type;
    return typeof type === 'string' ? (message as Message) : undefined;
  } catch {
    return undefined;
  }
}
