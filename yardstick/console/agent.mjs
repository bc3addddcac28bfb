// A sub-agent: it asks for access with the client's token, claims its own, and works over a WebSocket.
import WebSocket from 'ws';
import { until } from './lib/wait.mjs';

export class Agent {
  constructor(daemon, name) { Object.assign(this, { daemon, name, waiting: new Map(), commands: 0 }); }

  async ask(scopes, roots, reason, more = {}) {
    const { status, body } = await this.daemon.post('/mcp/request_access', { agent_id: this.name, scopes, roots, reason, ...more });
    if (status !== 200) throw new Error(`request_access: ${status} ${JSON.stringify(body)}`);
    Object.assign(this, { request: body.request_id, secret: body.claim });
    return body;
  }

  async claim(wait_seconds = 20) {
    const { body } = await this.daemon.post('/mcp/claim', { request_id: this.request, claim: this.secret, wait_seconds });
    if (body.session_token) Object.assign(this, { session: body.session_id, token: body.session_token });
    return body;
  }

  async connect() {
    const url = `${this.daemon.url.replace(/^http/, 'ws')}/mcp/session/${this.session}`;
    this.socket = new WebSocket(url, { headers: { Authorization: `Bearer ${this.token}` } });
    this.socket.on('close', (code) => { this.closed = code; });
    this.socket.on('message', (text) => {
      const message = JSON.parse(text);
      this.waiting.get(message.id)?.(message);
    });
    await new Promise((done, failed) => { this.socket.once('open', done); this.socket.once('error', failed); });
  }

  // The answer to come; it may wait for the person.
  act(action, args) {
    const id = `c${++this.commands}`;
    const answer = new Promise((done) => this.waiting.set(id, done));
    this.socket.send(JSON.stringify({ type: 'cmd', id, action, args }));
    return answer;
  }

  async closing() { return until('the socket is closed', () => this.closed); }
}
