// A sub-agent: it asks, is approved, and works over a WebSocket.
import WebSocket from 'ws';
import { until } from './wait.mjs';

// What a person is asked about, each time.
const CONFIRMED = new Set(['delete_file', 'exec_command', 'open_terminal', 'send_input', 'manage_plugins']);

export class Agent {
  constructor(daemon, name) { Object.assign(this, { daemon, name, waiting: new Map(), events: [], commands: 0 }); }

  async ask(scopes, roots, reason = 'the checklist', more = {}) {
    const { status, body } = await this.daemon.post('/mcp/request_access', { agent_id: this.name, scopes, roots, reason, ...more });
    if (status !== 200) throw new Error(`request_access: ${status} ${JSON.stringify(body)}`);
    Object.assign(this, { asked: body, request: body.request_id });
    return body;
  }

  async approved(more = {}) {
    const { status, body } = await this.daemon.post('/mcp/approve', { request_id: this.request, ...more }, this.daemon.management);
    if (status !== 200) throw new Error(`approve: ${status} ${JSON.stringify(body)}`);
    Object.assign(this, { session: body.session_id, token: body.session_token });
    return body;
  }

  // Its token, once somebody has decided.
  async claim() {
    const { request_id, claim } = this.asked;
    const { body } = await this.daemon.post('/mcp/claim', { request_id, claim, wait_seconds: 20 });
    Object.assign(this, { session: body.session_id, token: body.session_token });
    return body;
  }

  async connect() {
    const url = `${this.daemon.url.replace(/^http/, 'ws')}/mcp/session/${this.session}`;
    this.socket = new WebSocket(url, { headers: { Authorization: `Bearer ${this.token}` } });
    this.closed = undefined;
    this.socket.on('close', (code) => {
      this.closed = code;
      for (const done of this.waiting.values()) done({ status: 'closed', data: { code } });
    });
    this.socket.on('message', (text) => {
      const message = JSON.parse(text);
      if (message.type === 'event') this.events.push({ ...message.data, at: performance.now() });
      if (message.type === 'result') this.waiting.get(message.id)?.(message);
    });
    await new Promise((done, failed) => { this.socket.once('open', done); this.socket.once('error', failed); });
    return this;
  }

  async enter(scopes, roots, more) {
    await this.ask(scopes, roots);
    await this.approved(more);
    return this.connect();
  }

  // Does something. `took` is how long, without the time that a person took.
  async act(action, args = {}, isAllowed = CONFIRMED.has(action)) {
    if (this.closed) return { status: 'closed', data: { code: this.closed } };
    const id = `c${++this.commands}`;
    const answer = new Promise((done) => this.waiting.set(id, done));
    let begun = performance.now();
    this.socket.send(JSON.stringify({ type: 'cmd', id, action, args }));
    if (isAllowed) begun = (await Promise.race([this.daemon.allow(), answer.then(() => begun)]));
    const late = new Promise((done) => { setTimeout(() => done({ status: 'late', data: {} }), 90_000).unref(); });
    const result = await Promise.race([answer, late]);
    this.waiting.delete(id);
    return { ...result, took: performance.now() - begun };
  }

  // An event that has come, or comes.
  event(name, fits = () => true) {
    return until(`the event ${name}`, () => this.events.find((event) => event.event === name && fits(event)), 15_000);
  }
}
