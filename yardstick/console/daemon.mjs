// The daemon under test, with a home of its own, and the commands that a person types.
import { spawn, execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { until } from './lib/wait.mjs';

export class Daemon {
  constructor(prism, work) {
    Object.assign(this, { prism, work, home: `${work}/home` });
    const env = { HOME: work, PATH: process.env.PATH, LANG: 'C.UTF-8', PRISM_HOME: this.home };
    this.options = { cwd: work, env };
    writeFileSync(`${work}/fickle.txt`, 'Reads a note.\n');
    writeFileSync(`${this.home}/prism.toml`, [
      '[server.demo]', `command = [${JSON.stringify(prism)}, "demo-server"]`,
      '[server.demo.tools]', 'confirm = ["slow"]',
      '[server.fickle]', `command = [${[process.execPath, `${import.meta.dirname}/fickle.mjs`, `${work}/fickle.txt`].map((word) => JSON.stringify(word)).join(', ')}]`,
      '[server.fickle.tools]', 'pin = "ask"',
      '[server.broken]', 'command = ["/nonexistent/server"]', '',
    ].join('\n'));
  }

  // Starts it, at the port that it had before if it had one.
  async start() {
    this.process = spawn(this.prism, ['serve', '--port', String(this.port ?? 0)], { ...this.options, stdio: ['ignore', 'ignore', 'pipe'] });
    this.process.stderr.on('data', (text) => { this.log = ((this.log ?? '') + text).slice(-20_000); });
    const found = await until('the daemon listens', () => JSON.parse(readFileSync(`${this.home}/http-mcp.json`, 'utf8')));
    Object.assign(this, { url: found.url, port: found.port });
    this.token = readFileSync(`${this.home}/http-mcp-token`, 'utf8').trim();
  }

  async stop() {
    const ended = new Promise((done) => this.process.once('exit', done));
    this.process.kill('SIGTERM');
    await ended;
  }

  async type(...words) {
    const { stdout } = await promisify(execFile)(this.prism, words, { ...this.options, timeout: 30_000 });
    return stdout.trim();
  }

  link() { return this.type('console', '--print'); }

  async post(path, body, token = this.token) {
    const answer = await fetch(this.url + path, {
      method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` }, body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json().catch(() => ({})) };
  }
}
