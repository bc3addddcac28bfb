import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import type * as vscode from 'vscode';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Desk } from '../src/desk';
import { Line } from '../src/line';
import { Refusal } from '../src/refusal';
import type { Call, Verb } from '../src/verbs';
import { EventEmitter, settings } from './vscode';

type Message = Record<string, unknown> & { type: string };

/** A daemon, as far as an editor sees it. */
class Daemon {
  readonly server: Server;
  private readonly sockets = new WebSocketServer({ noServer: true });
  private readonly said: Message[] = [];
  private readonly waiting: ((message: Message) => void)[] = [];
  socket: WebSocket | undefined;
  connections = 0;
  tokens: (string | undefined)[] = [];

  constructor() {
    this.server = createServer();
    this.server.on('upgrade', (request, socket, head) => {
      this.tokens.push(request.headers.authorization);
      this.sockets.handleUpgrade(request, socket, head, (one) => {
        this.connections += 1;
        this.socket = one;
        one.on('message', (data) => {
          const message = JSON.parse(String(data)) as Message;
          const next = this.waiting.shift();
          if (next) next(message);
          else this.said.push(message);
        });
      });
    });
  }

  async listen(at: string | number): Promise<number> {
    await new Promise<void>((done) => void this.server.listen(at, done));
    return (this.server.address() as AddressInfo).port;
  }

  /** The next message, which is of this type. */
  async next(type: string): Promise<Message> {
    const message = this.said.shift() ?? (await new Promise<Message>((done) => void this.waiting.push(done)));
    assert.equal(message.type, type, JSON.stringify(message));
    return message;
  }

  say(message: object): void {
    this.socket?.send(JSON.stringify(message));
  }

  async register(): Promise<Message> {
    const message = await this.next('register');
    this.say({ type: 'registered', protocol: 1, assigned_id: 'test#1', bridge_version: '0', epoch: 1, limits: {} });
    return message;
  }

  end(): void {
    this.socket?.terminate();
    this.server.close();
    this.server.closeAllConnections();
  }
}

const home = mkdtempSync(join(tmpdir(), 'prism-line-'));
settings.home = home;
const open: { dispose(): void }[] = [];
after(() => {
  for (const one of open) one.dispose();
  rmSync(home, { recursive: true });
});

const verbs = new Map<string, Verb>();
let states: string[] = [];
let rootsChanged = new EventEmitter<void>();
let roots: string[] = [];
beforeEach(() => {
  for (const one of open.splice(0)) one.dispose();
  rmSync(join(home, 'http-mcp.json'), { force: true });
  writeFileSync(join(home, 'plugin-token'), 'secret\n');
  [states, rootsChanged, roots] = [[], new EventEmitter<void>(), ['/w']];
});

async function daemon(at: string | number = 0): Promise<[Daemon, number]> {
  const one = new Daemon();
  open.push({ dispose: () => one.end() });
  return [one, await one.listen(at)];
}

function registration(port: number, socket?: string): void {
  writeFileSync(join(home, 'http-mcp.json'), JSON.stringify({ port, socket }));
}

function line(): Line {
  const one = new Line({ pluginId: 'test', kind: 'test', version: '1', instanceId: 'i', startedAtMs: 5 });
  const log = { debug() {}, info() {}, warn() {} };
  const voice = { connected: () => states.push('voice'), disconnected() {}, tellState: () => states.push('state') };
  const desk = {
    line: one,
    log,
    voice,
    roots: {
      onChange: rootsChanged.event,
      get all() {
        return roots;
      },
    },
  };
  one.onState((state) => states.push(state.is));
  one.start(desk as unknown as Desk, verbs);
  open.push(one);
  return one;
}

function verb(name: string, doing: (call: Call) => Promise<object>): void {
  verbs.set(name, doing);
}

//
test('an editor registers with its secret, answers pings through its window, and tells its state', async () => {
  const [there, port] = await daemon();
  registration(port);
  line();
  const register = await there.register();
  assert.deepEqual(there.tokens, ['Bearer secret']);
  assert.deepEqual([register['instance_id'], register['started_at_ms'], register['ui']], ['i', 5, true]);
  assert.deepEqual(register['roots'], ['/w']);
  there.say({ type: 'ping', id: 7 });
  assert.deepEqual(await there.next('pong'), { type: 'pong', id: 7, ui: true });
  assert.deepEqual(states, ['connecting', 'connected', 'voice']);
});

test('a daemon that comes later is found as soon as it says where it is', async () => {
  line();
  const [there, port] = await daemon();
  registration(port);
  await there.register();
});

test('where nobody listens at the port, the socket is tried', async () => {
  const [gone, port] = await daemon();
  gone.end();
  const socket = join(home, 'prism.sock');
  const [there] = await daemon(socket);
  registration(port, socket);
  line();
  await there.register();
});

test('a connection that is lost is made again, and what was asked over it is ended', async () => {
  const [there, port] = await daemon();
  registration(port);
  line();
  await there.register();
  let stop: vscode.CancellationToken | undefined;
  const begun = new Promise<void>((done) => {
    verb('hang', async (call) => {
      stop = call.stop;
      done();
      return new Promise(() => {});
    });
  });
  there.say({ type: 'cmd', id: 1, action: 'hang', args: {}, session_id: 's', deadline_ms: 60_000 });
  await begun;
  there.socket?.terminate();
  await there.register();
  assert.equal(stop?.isCancellationRequested, true);
  assert.equal(there.connections, 2);
});

test('other folders are said in a new connection', async () => {
  const [there, port] = await daemon();
  registration(port);
  line();
  await there.register();
  roots = ['/w', '/x'];
  rootsChanged.fire();
  assert.deepEqual((await there.register())['roots'], ['/w', '/x']);
});

test('each command is answered once: with what came of it, a refusal, or that it took too long', async () => {
  const [there, port] = await daemon();
  registration(port);
  line();
  await there.register();
  verb('good', async ({ args }) => ({ said: args.text('word') }));
  verb('bad', async () => {
    throw new Refusal('changed', 'look again', 50);
  });
  verb('broken', async () => {
    throw new Error('no such thing');
  });
  verb('slow', async ({ progress }) => {
    progress('half', 1, 2);
    return new Promise(() => {});
  });
  const ask = (id: number, action: string, args: object = {}): void =>
    there.say({ type: 'cmd', id, action, args, session_id: 's', deadline_ms: 300 });
  ask(1, 'good', { word: 'hi' });
  assert.deepEqual(await there.next('result'), { type: 'result', id: 1, status: 'ok', data: { said: 'hi' } });
  ask(2, 'bad');
  const refused = { code: 'changed', message: 'look again', details: { retry_after_ms: 50 } };
  assert.deepEqual(await there.next('result'), { type: 'result', id: 2, status: 'error', error: refused });
  ask(3, 'broken');
  assert.deepEqual((await there.next('result'))['error'], { code: 'failed', message: 'no such thing' });
  ask(4, 'nothing');
  assert.deepEqual((await there.next('result'))['error'], {
    code: 'unsupported',
    message: 'this editor cannot nothing',
  });
  ask(5, 'slow');
  assert.deepEqual(await there.next('progress'), { type: 'progress', id: 5, message: 'half', done: 1, total: 2 });
  assert.equal(((await there.next('result'))['error'] as { code: string }).code, 'timed_out');
  // What was cancelled is not answered.
  there.say({ type: 'cmd', id: 6, action: 'slow', args: {}, session_id: 's', deadline_ms: 60_000 });
  await there.next('progress');
  there.say({ type: 'cancel', id: 6 });
  ask(7, 'good', { word: 'still here' });
  assert.equal((await there.next('result'))['id'], 7);
});

test('more commands than can be done at once are told to come back', async () => {
  const [there, port] = await daemon();
  registration(port);
  line();
  await there.register();
  verb('wait', async () => new Promise(() => {}));
  for (let id = 1; id <= 65; id += 1) {
    there.say({ type: 'cmd', id, action: 'wait', args: {}, session_id: 's', deadline_ms: 60_000 });
  }
  const answer = await there.next('result');
  assert.deepEqual([answer['id'], (answer['error'] as { code: string }).code], [65, 'rate_limited']);
});

test('what the line does not know goes to who listens for it', async () => {
  const [there, port] = await daemon();
  registration(port);
  const one = line();
  const heard = new Promise<unknown>((done) => one.onMessage('desk', done));
  await there.register();
  there.say({ type: 'desk', requests: [1] });
  assert.deepEqual(await heard, { type: 'desk', requests: [1] });
  there.say({ type: 'get_state' });
  there.say({ type: 'ping', id: 1 });
  await there.next('pong');
  assert.equal(states.at(-1), 'state');
});
