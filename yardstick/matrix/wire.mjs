// The wire, spoken by hand so that each revision is spoken exactly: HTTP, event streams, and what came in on them.
import http from 'node:http';

export const AUTH = process.env.YARD_AUTH ? { authorization: process.env.YARD_AUTH } : {};

/// How long a server may take to begin an answer.
export const PATIENCE_MS = 20_000;

/// What came in on one stream, in order. `find` waits, never longer than it is told.
export class Inbox {
  all = [];
  ended = false;
  heard = () => {}; // told of each message
  #waiting = new Set();

  put(entry) {
    this.all.push(entry);
    this.heard(entry.message);
    for (const look of [...this.#waiting]) look();
  }

  end() {
    this.ended = true;
    for (const look of [...this.#waiting]) look();
  }

  /// Resolves with the first entry from `from` on that `wanted` likes; undefined once the stream has ended without one.
  async find(what, wanted, ms = PATIENCE_MS, from = 0) {
    return this.#until(what, ms, () => {
      const found = this.all.slice(from).find((e) => wanted(e.message));
      return found || this.ended ? { found } : undefined;
    }).then(({ found }) => found);
  }

  whenEnded(what, ms) {
    return this.#until(what, ms, () => (this.ended ? true : undefined));
  }

  #until(what, ms, look) {
    return new Promise((done, fail) => {
      const check = () => {
        const result = look();
        if (result === undefined) return false;
        clearTimeout(timer);
        this.#waiting.delete(check);
        done(result);
        return true;
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(check);
        fail(new Error(`no ${what} in ${ms} ms`));
      }, ms);
      if (!check()) this.#waiting.add(check);
    });
  }
}

/// One HTTP exchange; the promise resolves with its head. Messages go to `inbox` as they arrive, as { message, raw, event, id }.
export function exchange(agent, url, { method = 'POST', headers = {}, body, inbox = new Inbox() }) {
  return new Promise((done, fail) => {
    const request = http.request(url, {
      method, agent, headers: { ...AUTH, ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
    });
    const what = /"method":"([^"]+)"/.exec(body)?.[1] ?? method;
    const timer = setTimeout(() => request.destroy(new Error(`no answer to ${what} in ${PATIENCE_MS} ms`)), PATIENCE_MS);
    request.on('error', (e) => { clearTimeout(timer); inbox.end(); fail(e); });
    request.on('response', (response) => {
      clearTimeout(timer);
      const type = String(response.headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();
      const read = type === 'text/event-stream' ? events(inbox) : whole(inbox, type);
      response.setEncoding('utf8');
      response.on('data', read.data);
      response.on('end', read.end);
      response.on('close', () => inbox.end());
      response.on('error', () => {}); // closed by us, or cut: `close` follows
      done({
        status: response.statusCode, headers: response.headers, type, inbox, text: read.text, close: () => request.destroy(),
      });
    });
    request.end(body);
  });
}

function whole(inbox, type) {
  let text = '';
  const settled = () => inbox.whenEnded('end of a body', PATIENCE_MS).then(() => text);
  return {
    data: (part) => { text += part; },
    end: () => {
      if (type === 'application/json' && text) {
        try {
          const value = JSON.parse(text);
          for (const message of Array.isArray(value) ? value : [value]) inbox.put({ message, raw: text });
        } catch { /* the status and the text say enough */ }
      }
    },
    text: settled,
  };
}

function events(inbox) {
  let rest = '';
  let text = '';
  const data = (part) => {
    text += part;
    rest += part;
    for (let at; (at = /\r\n\r\n|\n\n|\r\r/.exec(rest)); ) {
      const block = rest.slice(0, at.index);
      rest = rest.slice(at.index + at[0].length);
      const event = { name: 'message', data: [], id: undefined };
      for (const line of block.split(/\r\n|\n|\r/)) {
        const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
        if (field === 'event') event.name = value;
        if (field === 'data') event.data.push(value);
        if (field === 'id') event.id = value;
      }
      const raw = event.data.join('\n');
      if (event.name !== 'message') inbox.put({ message: {}, raw, event: event.name, id: event.id });
      else if (raw) for (const message of [JSON.parse(raw)].flat()) inbox.put({ message, raw, event: event.name, id: event.id });
    }
  };
  return { data, end: () => {}, text: async () => text };
}
