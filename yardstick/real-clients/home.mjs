// A home folder of its own for one agent, with a daemon of its own: what a person types there, and an end that leaves nothing.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const BIN = join(dirname(fileURLToPath(import.meta.url)), 'node_modules/.bin');
// How long what was told to end may take.
const VANISH_MS = 20_000;
const TYPED_MS = 60_000;

// `told` is told each command that is typed; `config` is what the daemon's config says beside the port.
export async function openHome(prism, { told = () => {}, config = '' } = {}) {
  const home = mkdtempSync(join(realpathSync(tmpdir()), 'agent-'));
  const env = { HOME: home, PATH: [dirname(prism), process.env.PATH].join(delimiter), TMPDIR: tmpdir(), LANG: 'C.UTF-8' };
  const inside = [() => spawnSync(prism, ['stop'], { env, cwd: home, timeout: TYPED_MS })];
  const stop = () => { while (inside.length > 0) inside.pop()(); };
  const remove = () => rmSync(home, { recursive: true, force: true, maxRetries: 10 });
  // A run that is interrupted leaves nothing either.
  const cut = () => { stop(); remove(); };
  process.once('exit', cut);
  const port = await freePort();
  mkdirSync(join(home, '.prism'), { mode: 0o700 });
  writeFileSync(join(home, '.prism/prism.toml'), `port = ${port}\n${config}`);
  return {
    path: home,
    env,
    port,
    type(...words) {
      return this.typeIn(home, ...words);
    },
    typeIn(folder, ...words) {
      const ran = spawnSync(prism, words, { env, cwd: folder, encoding: 'utf8', timeout: TYPED_MS });
      told(`prism ${words.join(' ')}`);
      if (ran.status !== 0) throw new Error(`prism ${words.join(' ')}: ${ran.status ?? ran.error}: ${ran.stderr.trim()}`);
      return ran.stdout;
    },
    // What was started in this home ends with it, the last first.
    ends: (close) => { inside.push(close); },
    // Asks the daemon as a script of this user's does.
    async fetch(path, init = {}) {
      const token = readFileSync(join(home, '.prism/http-mcp-token'), 'utf8').trim();
      return fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } });
    },
    // Everything that was started here, by us or by whom we started, has this home. What is on its way out gets the time to go.
    async leftBehind() {
      const deadline = Date.now() + VANISH_MS;
      for (;;) {
        const found = processes().filter(({ environment }) => environment.includes(`HOME=${home}`));
        if (found.length === 0 || Date.now() > deadline) return found;
        await sleep(50);
      }
    },
    // Returns what had to be ended because nobody else had.
    async close() {
      stop();
      const left = await this.leftBehind();
      for (const { pid } of left) {
        try { process.kill(pid); } catch { /* it went with its parent */ }
      }
      process.off('exit', cut);
      remove();
      return left;
    },
  };
}

export const named = (processes) => processes.map(({ pid, name }) => `${pid} (${name})`).join(', ');

export function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

function processes() {
  const text = (pid, file) => { try { return readFileSync(`/proc/${pid}/${file}`, 'utf8'); } catch { return ''; } };
  const pids = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.map((pid) => ({ pid: Number(pid), name: text(pid, 'comm').trim(), environment: text(pid, 'environ').split('\0') }));
}
