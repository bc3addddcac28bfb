// The daemon under test, with a home of its own, and the person at its gate.
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { until } from './wait.mjs';

export class Daemon {
  // `settings` are the lines of its prism.toml.
  constructor(prism, work, settings = ['[gate]', 'rate_limit = 200']) {
    Object.assign(this, { prism, work, home: `${work}/home` });
    // The toolchains are the user's: cargo, rustup and npm are found as in any terminal.
    this.env = { ...process.env, LANG: 'C.UTF-8', PRISM_HOME: this.home };
    writeFileSync(`${this.home}/prism.toml`, `${settings.join('\n')}\n`);
  }

  async start() {
    this.process = spawn(this.prism, ['serve', '--port', '0'], { cwd: this.work, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
    this.process.stderr.on('data', (text) => { this.log = ((this.log ?? '') + text).slice(-20_000); });
    this.url = (await until('the daemon listens', () => {
      if (this.process.exitCode !== null) throw new Error(`it has ended: ${this.log}`);
      return JSON.parse(readFileSync(`${this.home}/http-mcp.json`, 'utf8'));
    })).url;
    this.token = readFileSync(`${this.home}/http-mcp-token`, 'utf8').trim();
    this.management = readFileSync(`${this.home}/management-token`, 'utf8').trim();
  }

  async stop(signal = 'SIGTERM') {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill(signal);
    await ended;
  }

  async post(path, body, token = this.token) {
    const answer = await fetch(this.url + path, {
      method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }, body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json().catch(() => ({})) };
  }

  async seen(path) {
    return (await fetch(this.url + path, { headers: { Authorization: `Bearer ${this.management}` } })).json();
  }

  // The person allows the one thing that waits. Returns when they did.
  async allow() {
    const shown = await until('something waits for the person', async () => (await this.seen('/mcp/confirmations')).confirmations[0]);
    const at = performance.now();
    await this.post('/mcp/confirm', { confirmation_id: shown.confirmation_id, digest: shown.digest, allow: true }, this.management);
    return at;
  }
}
