// One client a way of speaking. All of them can `open`, `request`, `start`, `notify`, `close`, and keep what came outside
// any request in `outside`. What a revision forbids on its wire is an error wherever it is seen.
import http from 'node:http';
import { Inbox, PATIENCE_MS, exchange } from './wire.mjs';

const INFO = { name: 'yard-matrix', version: '1.0.0' };
const META = 'io.modelcontextprotocol/';
const JSON_TYPE = { 'content-type': 'application/json' };
const BOTH = { accept: 'application/json, text/event-stream' };

export const must = (ok, why) => { if (!ok) throw new Error(typeof why === 'function' ? why() : why); };
const isAnswer = (m) => m.id !== undefined && m.method === undefined;
const isQuestion = (m) => m.id !== undefined && m.method !== undefined;
const short = (v) => JSON.stringify(v)?.slice(0, 200);

export const SAMPLE = { model: 'yard', role: 'assistant', content: { type: 'text', text: 'yard-sample' }, stopReason: 'endTurn' };
const fill = (schema) => Object.fromEntries(Object.keys(schema?.properties ?? {}).map((key) => [key, 'yard-elicit']));
const reply = ({ method, params }) => {
  if (method === 'sampling/createMessage') return SAMPLE;
  if (method === 'elicitation/create') return { action: 'accept', content: fill(params.requestedSchema) };
  throw new Error(`asked ${method}, which was never offered`);
};

class Front {
  agent = new http.Agent({ keepAlive: true });
  outside = new Inbox();
  streams = new Set(); // open exchanges, closed with the client
  #id = 0;

  constructor(url, revision) {
    this.url = url;
    this.revision = revision;
    this.era = revision >= '2026' ? 'modern' : 'legacy';
    this.elicits = revision >= '2025-06-18';
    const form = revision >= '2025-11-25' ? { form: {} } : {};
    this.capabilities = { sampling: {}, ...(this.elicits ? { elicitation: form } : {}) };
  }

  nextId() { return ++this.#id; }

  call(name, args = {}, options = {}) {
    const { meta, ...rest } = options;
    return this.request('tools/call', { name, arguments: args, ...(meta ? { _meta: meta } : {}) }, rest);
  }

  end() {
    for (const stream of this.streams) stream.close();
    this.agent.destroy();
  }

  // Results of the eras up to 2025-11-25 have nothing of 2026-07-28 in them.
  checkLegacy({ message }) {
    const result = message.result;
    if (!result) return;
    for (const key of ['resultType', 'ttlMs', 'cacheScope']) must(!(key in result), () => `${key} in a legacy result: ${short(result)}`);
    const modern = Object.keys(result._meta ?? {}).filter((key) => key.startsWith(META) && key !== `${META}related-task`);
    must(!modern.length, () => `${modern} in a legacy result`);
  }
}

// === 2025-03-26, 2025-06-18, 2025-11-25 ===

export class Streamable extends Front {
  session;
  strays = []; // questions that came outside the call that caused them

  get headers() {
    return {
      ...(this.session ? { 'mcp-session-id': this.session } : {}),
      // The header is younger than 2025-03-26, and comes after the handshake.
      ...(this.session && this.revision >= '2025-06-18' ? { 'mcp-protocol-version': this.revision } : {}),
    };
  }

  async open() {
    const hello = await this.request('initialize', { protocolVersion: this.revision, capabilities: this.capabilities, clientInfo: INFO });
    this.hello = hello.answer.result;
    must(this.hello, () => `initialize: HTTP ${hello.status} ${short(hello.answer)}`);
    must(this.hello.protocolVersion === this.revision, () => `asked for ${this.revision}, got ${this.hello.protocolVersion}`);
    this.session = hello.headers['mcp-session-id'];
    must(/^[\x21-\x7e]{16,}$/.test(this.session ?? ''), () => `session id ${short(this.session)}`);
    await this.notify('notifications/initialized');
    const get = await exchange(this.agent, this.url, {
      method: 'GET', headers: { ...this.headers, accept: 'text/event-stream' }, inbox: this.outside,
    });
    this.streams.add(get);
    must(get.status === 200 && get.type === 'text/event-stream', () => `GET: HTTP ${get.status} ${get.type}`);
    this.outside.heard = (message) => { // a server may ask here too, though a question that belongs to a call should not
      if (!isQuestion(message)) return;
      this.strays.push(message);
      this.#answer(message).catch((e) => this.strays.push(e));
    };
  }

  /// Posts a request and returns at once; its messages come into `inbox`.
  async start(method, params, id = this.nextId()) {
    const sent = await this.#post({ jsonrpc: '2.0', id, method, params });
    this.streams.add(sent);
    return Object.assign(sent, { requestId: id });
  }

  async request(method, params, { id, body } = {}) {
    const sent = body ? Object.assign(await this.#post(body), { requestId: id }) : await this.start(method, params, id);
    const asked = [];
    let from = 0;
    for (;;) {
      const next = await sent.inbox.find(`answer to ${method}`, (m) => isAnswer(m) || isQuestion(m), PATIENCE_MS, from);
      if (!next) throw new Error(`${method}: HTTP ${sent.status}, ended without an answer: ${(await sent.text()).slice(0, 200)}`);
      must(next.event === undefined || next.event === 'message', () => `an event named ${next.event}`);
      if (isAnswer(next.message)) {
        this.streams.delete(sent);
        this.checkLegacy(next);
        must(next.message.id === undefined || next.message.id === sent.requestId || body, () => `answer has id ${short(next.message.id)}`);
        const notes = sent.inbox.all.slice(0, sent.inbox.all.indexOf(next)).map((e) => e.message).filter((m) => !isQuestion(m));
        return { status: sent.status, headers: sent.headers, answer: next.message, raw: next.raw, notes, asked };
      }
      from = sent.inbox.all.indexOf(next) + 1;
      asked.push(next.message);
      await this.#answer(next.message);
    }
  }

  async #answer(question) {
    const { status } = await this.#post({ jsonrpc: '2.0', id: question.id, result: reply(question) });
    must(status === 202, () => `an answer to ${question.method} got HTTP ${status}`);
  }

  /// A batch, of 2025-03-26 only: all answers, from an array or from events.
  async batch(messages) {
    const sent = await this.#post(messages);
    await sent.inbox.whenEnded('end of a batch', PATIENCE_MS);
    return { status: sent.status, answers: sent.inbox.all.map((e) => e.message).filter(isAnswer) };
  }

  async notify(method, params) {
    const sent = await this.#post({ jsonrpc: '2.0', method, ...(params ? { params } : {}) });
    must(sent.status === 202 && !(await sent.text()), () => `${method} got HTTP ${sent.status}`);
  }

  #post(message) {
    const body = typeof message === 'string' ? message : JSON.stringify(message);
    return exchange(this.agent, this.url, { headers: { ...JSON_TYPE, ...BOTH, ...this.headers }, body });
  }

  async close() {
    if (this.session) await exchange(this.agent, this.url, { method: 'DELETE', headers: this.headers });
    this.end();
  }
}

// === 2024-11-05 ===

export class Sse extends Front {
  async open() {
    const stream = await exchange(this.agent, this.url, { method: 'GET', headers: { accept: 'text/event-stream' }, inbox: this.outside });
    this.streams.add(stream);
    must(stream.status === 200 && stream.type === 'text/event-stream', () => `GET: HTTP ${stream.status} ${stream.type}`);
    const first = await this.outside.find('endpoint', () => true);
    must(first?.event === 'endpoint', () => `the first event is ${first?.event ?? 'none'}`);
    this.endpoint = new URL(first.raw, this.url);
    must(this.endpoint.origin === new URL(this.url).origin, () => `endpoint ${first.raw} is of another origin`);
    const hello = await this.request('initialize', { protocolVersion: this.revision, capabilities: this.capabilities, clientInfo: INFO });
    this.hello = hello.answer.result;
    must(this.hello, () => `initialize: ${short(hello.answer)}`);
    must(this.hello.protocolVersion === this.revision, () => `asked for ${this.revision}, got ${this.hello.protocolVersion}`);
    await this.notify('notifications/initialized');
  }

  async start(method, params, id = this.nextId(), body = JSON.stringify({ jsonrpc: '2.0', id, method, params })) {
    const from = this.outside.all.length;
    await this.#post(body);
    return { requestId: id, inbox: this.outside, from, close: () => {} };
  }

  async request(method, params, { id, body } = {}) {
    const sent = await this.start(method, params, id, body);
    const asked = [];
    let { from } = sent;
    // A body of the caller's own has an id that JavaScript's numbers may not hold: its answer is the next one.
    const mine = (m) => isAnswer(m) && (body || m.id === sent.requestId);
    for (;;) {
      const next = await this.outside.find(`answer to ${method}`, (m) => mine(m) || isQuestion(m), PATIENCE_MS, from);
      if (!next) throw new Error(`${method}: the stream ended without an answer`);
      must(next.event === 'message', () => `an event named ${next.event}`);
      const at = this.outside.all.indexOf(next);
      if (isAnswer(next.message)) {
        this.checkLegacy(next);
        const notes = this.outside.all.slice(sent.from, at).map((e) => e.message).filter((m) => m.method && !isQuestion(m));
        return { status: 202, answer: next.message, raw: next.raw, notes, asked };
      }
      from = at + 1;
      asked.push(next.message);
      await this.#post(JSON.stringify({ jsonrpc: '2.0', id: next.message.id, result: reply(next.message) }));
    }
  }

  notify(method, params) {
    return this.#post(JSON.stringify({ jsonrpc: '2.0', method, ...(params ? { params } : {}) }));
  }

  async #post(body) {
    const sent = await exchange(this.agent, this.endpoint, { headers: JSON_TYPE, body });
    const text = await sent.text();
    must(sent.status === 202, () => `a message got HTTP ${sent.status} ${text.slice(0, 200)}`);
  }

  /// The status of a message under a token that was never given out.
  async knock() {
    const nowhere = new URL(String(this.endpoint).replace(/[0-9a-f](?=[^0-9a-f]*$)/i, (c) => (c === '0' ? '1' : '0')));
    const body = JSON.stringify({ jsonrpc: '2.0', id: this.nextId(), method: 'ping' });
    return (await exchange(this.agent, nowhere, { headers: JSON_TYPE, body })).status;
  }

  async close() { this.end(); }
}

// === 2026-07-28 ===

export class Modern extends Front {
  async open() {
    const { answer, status } = await this.request('server/discover', {});
    this.hello = answer.result;
    must(this.hello, () => `server/discover: HTTP ${status} ${short(answer)}`);
    must(this.hello.supportedVersions?.includes(this.revision), () => `supportedVersions ${short(this.hello.supportedVersions)}`);
  }

  #encode(method, params) {
    const name = { 'tools/call': params.name, 'prompts/get': params.name, 'resources/read': params.uri }[method];
    const headers = {
      ...JSON_TYPE, ...BOTH, 'mcp-protocol-version': this.revision, 'mcp-method': method, ...(name ? { 'mcp-name': name } : {}),
    };
    const _meta = {
      ...params._meta,
      [`${META}protocolVersion`]: this.revision,
      [`${META}clientInfo`]: INFO,
      [`${META}clientCapabilities`]: this.capabilities,
    };
    return { headers, params: { ...params, _meta } };
  }

  async start(method, bare, id = this.nextId()) {
    const { headers, params } = this.#encode(method, bare);
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const sent = await exchange(this.agent, this.url, { headers, body });
    this.streams.add(sent);
    must(sent.headers['mcp-session-id'] === undefined, 'a session id in 2026-07-28');
    return Object.assign(sent, { requestId: id });
  }

  /// A request whose head may not come before it is closed again; `close` cuts the connection.
  pending(method, bare, id = this.nextId()) {
    const { headers, params } = this.#encode(method, bare);
    const agent = new http.Agent();
    const sent = exchange(agent, this.url, { headers, body: JSON.stringify({ jsonrpc: '2.0', id, method, params }) });
    const settled = sent.catch(() => undefined);
    return { settled, close: () => { agent.destroy(); settled.then((s) => s?.close()); } };
  }

  async request(method, params, { id, body, rounds = 5 } = {}) {
    const asked = [];
    const notes = [];
    for (let more = {}; ; ) {
      const full = { ...params, ...more };
      const sent = body
        ? await exchange(this.agent, this.url, { headers: this.#encode(method, full).headers, body })
        : await this.start(method, full, id);
      const last = await sent.inbox.find(`answer to ${method}`, isAnswer);
      if (!last) throw new Error(`${method}: HTTP ${sent.status}, ended without an answer: ${(await sent.text()).slice(0, 200)}`);
      await sent.inbox.whenEnded(`end of the stream of ${method}`, PATIENCE_MS);
      this.streams.delete(sent);
      const { all } = sent.inbox;
      must(all.at(-1) === last, () => `${short(all.at(-1).message)} after the answer`);
      for (const entry of all) {
        must(!isQuestion(entry.message), () => `the request ${entry.message.method} in 2026-07-28`);
        must(entry.id === undefined, 'an event id in 2026-07-28');
        must(entry.event === undefined || entry.event === 'message', () => `an event named ${entry.event}`);
      }
      const { result } = last.message;
      must(body || last.message.id === undefined || last.message.id === sent.requestId, () => `answer has id ${short(last.message.id)}`);
      must(!result || typeof result.resultType === 'string', () => `no resultType: ${short(result)}`);
      notes.push(...all.slice(0, -1).map((e) => e.message));
      if (result?.resultType !== 'input_required') {
        return { status: sent.status, headers: sent.headers, answer: last.message, raw: last.raw, notes, asked };
      }
      must(!('ttlMs' in result) && !('cacheScope' in result), 'a caching hint on input_required');
      must(result.inputRequests || typeof result.requestState === 'string', 'input_required without a question and without state');
      must(rounds-- > 0, `${method} still asks`);
      id = undefined;
      const entries = Object.entries(result.inputRequests ?? {});
      asked.push(...entries.map(([, question]) => question));
      more = {
        inputResponses: Object.fromEntries(entries.map(([key, question]) => [key, reply(question)])),
        ...(result.requestState === undefined ? {} : { requestState: result.requestState }),
      };
    }
  }

  /// Opens a subscription; resolves with the stream once it is acknowledged.
  async listen(notifications, id) {
    const sent = await this.start('subscriptions/listen', { notifications }, id);
    const first = await sent.inbox.find('acknowledgement', () => true);
    must(first?.message.method === 'notifications/subscriptions/acknowledged', () => `listen: HTTP ${sent.status} ${short(first?.message)}`);
    must(first.message.params._meta?.[`${META}subscriptionId`] === id, () => `acknowledged as ${short(first.message.params._meta)}`);
    return Object.assign(sent, { honoured: first.message.params.notifications });
  }

  body(method, params, id) { // a message with an id of the caller's own text
    return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${JSON.stringify(this.#encode(method, params).params)}}`;
  }

  async close() { this.end(); }
}
