// Another server of 127.0.0.1, such as an agent may run, and the page that a person opens there. The page tries in the browser
// whatever a page can; the server plays again what the browser has sent it, with whatever headers it likes.
import { createServer } from 'node:http';
import { until } from './lib/wait.mjs';

const PAGES = ['requests', 'grants', 'confirmations', 'audit', 'destinations', 'signals'];

// Runs in the page: reads and acts as far as the browser lets it. Returns what it got hold of.
async function tries({ daemon, pages, acts }) {
  const got = [];
  const within = (work, ms = 1500) => Promise.race([work, new Promise((done) => { setTimeout(done, ms); })]);
  const take = async (what, work) => {
    try {
      const text = await within(work());
      if (text) got.push({ what, text: String(text).slice(0, 20_000) });
    } catch { /* The browser refuses. */ }
  };
  for (const credentials of ['include', 'omit']) {
    for (const page of pages) {
      for (const mode of ['cors', 'no-cors']) {
        for (const query of ['', '?part']) {
          await take(`${mode} ${page}${query}`, async () => (await fetch(`${daemon}/console/${page}${query}`, { mode, credentials })).text());
        }
      }
    }
    for (const [act, body] of Object.entries(acts)) {
      for (const type of ['application/json', 'text/plain']) {
        for (const mode of ['cors', 'no-cors']) {
          await take(`${act} ${mode}`, async () => (await fetch(`${daemon}/console/act/${act}`, {
            method: 'POST', mode, credentials, headers: { 'Content-Type': type }, body: JSON.stringify(body),
          })).text());
        }
      }
      await take(`${act} beacon`, async () => { navigator.sendBeacon(`${daemon}/console/act/${act}`, JSON.stringify(body)); });
    }
  }
  await take('storage', async () => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]).replace('[{},{}]', ''));
  await take('a channel of that name', () => new Promise((done) => {
    const channel = new BroadcastChannel('prism-console');
    channel.onmessage = ({ data }) => done(JSON.stringify(data));
    channel.postMessage({ asks: true });
  }));
  await take('an event stream', () => new Promise((done) => {
    const source = new EventSource(`${daemon}/console/events`, { withCredentials: true });
    source.addEventListener('changed', ({ data }) => done(data));
  }));
  await take('a frame', () => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.onload = () => { try { done(frame.contentDocument.body.innerText); } catch { done(''); } };
    frame.src = `${daemon}/console/requests`;
    document.body.append(frame);
  }));
  await take('a window', () => new Promise((done) => {
    const opened = window.open(`${daemon}/console/requests`, '_blank');
    setTimeout(() => { try { done(opened.document.body.innerText); } catch { done(''); } }, 1000);
  }));
  // What every other request of this origin's carries along.
  for (const page of ['x', ...pages]) await fetch(`/console/${page}`, { credentials: 'include' });
  return got;
}

export class Neighbour {
  static async open(browser) {
    const self = new Neighbour();
    Object.assign(self, { seen: [] });
    self.server = createServer((request, answer) => {
      self.seen.push({ url: request.url, headers: request.headers });
      answer.setHeader('Content-Type', 'text/html');
      answer.end('<!doctype html><title>dev server</title><body>A page of yours</body>');
    });
    await new Promise((done) => { self.server.listen(0, '127.0.0.1', done); });
    self.url = `http://127.0.0.1:${self.server.address().port}`;
    // The same browser, and so the same cookies; beside the console, not in its window.
    self.page = await browser.context.newPage();
    return self;
  }

  async tries(daemon, acts) {
    await this.page.goto(`${this.url}/console/requests`);
    return this.page.evaluate(tries, { daemon, pages: PAGES, acts });
  }

  // Shows the daemon all that the browser has shown here, as a program would that is no browser.
  async plays(daemon, acts, request) {
    await until('the browser has sent something', () => this.seen.length > 0);
    const carried = Object.assign({}, ...this.seen.map(({ headers }) => headers));
    for (const name of ['host', 'connection', 'content-length', 'transfer-encoding', 'accept-encoding']) delete carried[name];
    const answers = [];
    const shown = { ...carried, origin: daemon, referer: `${daemon}/console/requests`, 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
    const ask = async (method, path, body) => {
      const headers = { ...shown, ...(body ? { 'content-type': 'application/json' } : {}) };
      const answer = await fetch(daemon + path, { method, headers, body: body && JSON.stringify(body), redirect: 'manual', signal: AbortSignal.timeout(5000) });
      answers.push({ path, status: answer.status, text: answer.status === 200 && path.endsWith('/events') ? 'a stream' : await answer.text() });
    };
    for (const page of PAGES) for (const query of ['', '?part']) await ask('GET', `/console/${page}${query}`);
    await ask('GET', `/console/requests/${request}`);
    await ask('GET', '/console/events');
    for (const [act, body] of Object.entries(acts)) await ask('POST', `/console/act/${act}`, body);
    await ask('POST', '/console/logout', {});
    await ask('POST', '/prism/console/link', {});
    await ask('GET', '/mcp/requests');
    await ask('GET', '/mcp/sessions');
    for (const [act, body] of Object.entries(acts)) await ask('POST', `/mcp/${act}`, body);
    return answers;
  }

  // Fills the jar that this address's ports share.
  tosses(count, bytes) {
    return this.page.evaluate(([many, long]) => {
      for (let at = 0; at < many; at += 1) document.cookie = `${at ? `c${at}` : 'prism_console'}=${'x'.repeat(long)}; path=/`;
      return document.cookie.length;
    }, [count, bytes]);
  }

  async close() {
    await this.page.close();
    this.server.closeAllConnections();
    await new Promise((done) => { this.server.close(done); });
  }
}
