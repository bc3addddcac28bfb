// Real agents find Prism by what `prism install` wrote, and call a tool through it.
//   node real-clients.mjs PRISM AGENT...
// Each agent has a home of its own, with a daemon of its own. The last line is the figure.
import { randomBytes } from 'node:crypto';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { AGENTS } from './agents.mjs';
import { startModel } from './model.mjs';

// OpenCode takes half a minute for its first start.
const PATIENCE_MS = 180_000;
// How long what was told to end may take.
const VANISH_MS = 5_000;
const BIN = join(dirname(fileURLToPath(import.meta.url)), 'node_modules/.bin');

// Not once: whoever interrupts a group signals twice.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(2));
const prism = realpathSync(process.argv[2]);
const names = process.argv.slice(3);
let checks = 0, passed = 0, whole = 0;
for (const name of names) {
  const before = [checks, passed];
  try {
    await whatOneAgentDoes(name, AGENTS[name]);
  } catch (error) {
    check(name, 'ran to the end', false, error.message);
  }
  whole += checks - before[0] === passed - before[1];
}
console.log(`real-clients: ${passed}/${checks} checks passed, ${whole}/${names.length} clients whole`);
process.exitCode = whole === names.length ? 0 : 1;

function check(agent, what, good, detail = '') {
  checks += 1;
  passed += good ? 1 : 0;
  console.log(`${good ? 'ok  ' : 'FAIL'} ${agent.padEnd(12)} ${what}${detail ? `: ${detail}` : ''}`);
}

async function whatOneAgentDoes(name, agent) {
  const home = mkdtempSync(join(realpathSync(tmpdir()), 'agent-'));
  const phrase = `said-${randomBytes(6).toString('hex')}`;
  const model = await startModel(phrase);
  const base = { HOME: home, PATH: [dirname(prism), process.env.PATH].join(delimiter), TMPDIR: tmpdir(), LANG: 'C.UTF-8' };
  const type = (...words) => {
    const ran = spawnSync(prism, words, { env: base, cwd: home, encoding: 'utf8', timeout: 60_000 });
    console.log(`     $ prism ${words.join(' ')}`);
    if (ran.status !== 0) throw new Error(`prism ${words.join(' ')}: ${ran.status ?? ran.error}: ${ran.stderr.trim()}`);
    return ran.stdout;
  };
  const config = join(home, agent.config);
  const read = () => (existsSync(config) ? readFileSync(config, 'utf8') : undefined);
  // A run that is interrupted leaves no daemon either.
  const stop = () => {
    spawnSync(prism, ['stop'], { env: base, cwd: home, timeout: 60_000 });
    rmSync(home, { recursive: true, force: true });
  };
  process.once('exit', stop);
  try {
    const port = await freePort();
    mkdirSync(join(home, '.prism'), { mode: 0o700 });
    writeFileSync(join(home, '.prism/prism.toml'), `port = ${port}\n`);
    const own = agent.own(model.url);
    mkdirSync(dirname(config), { recursive: true });
    if (own !== undefined) writeFileSync(config, own, { mode: 0o600 });

    type('add', 'demo', '--', prism, 'demo-server');
    type('install', name);
    type('uninstall', name);
    check(name, 'unused, it is undone to the byte', read() === own, own === undefined ? 'no file, as before' : `${own.length} bytes`);
    type('install', name);
    const installed = read();
    check(name, 'the config names Prism', installed?.includes(`http://127.0.0.1:${port}/mcp`) === true, agent.config);
    type('serve', '--detach');

    const ran = await ask(agent, { ...base, ...agent.env(model.url) }, home);
    const offered = [...new Set(model.requests.flatMap(({ tools }) => tools))];
    const ours = offered.filter((tool) => tool.includes('prism'));
    const tool = ours.find((one) => one.endsWith('demo__echo'));
    check(name, 'the model is offered the tools', tool !== undefined, `${tool ?? 'not echo'}, ${ours.length} of Prism's`);
    check(name, 'the tool is called through Prism', (await calls(home, port)) === 1, 'one tools/call at demo in /metrics');
    const result = model.requests.flatMap(({ results }) => results).find(({ text }) => text.includes(phrase));
    check(name, 'its result comes back to the model', result !== undefined, result ? JSON.stringify(result.text) : ran.stderr);
    let said;
    try { said = agent.says(ran.stdout); } catch { said = undefined; }
    check(name, 'and out on stdout', ran.code === 0 && said?.includes(phrase) === true, said ? JSON.stringify(said) : `exit ${ran.code}: ${ran.stdout}`);

    const used = read();
    type('uninstall', name);
    const kept = keptOf(own, installed, used);
    check(name, 'used, the rest of it stays', kept.holds(read()), kept.means);
    const left = read();
    type('install', name);
    type('uninstall', name);
    check(name, 'installed anew, it is undone to the byte', read() === left, `${left?.length ?? 0} bytes`);

    type('stop');
    const alive = await leftBehind(home);
    check(name, 'no process is left', alive.length === 0, alive.map((one) => `${one.pid} (${one.name})`).join(', '));
  } finally {
    process.off('exit', stop);
    stop();
    model.close();
    for (const { pid, name: program } of await leftBehind(home)) {
      console.log(`     ending what was left: ${pid} (${program})`);
      try { process.kill(pid); } catch { /* it went with its parent */ }
    }
  }
}

function ask(agent, env, cwd) {
  console.log(`     $ ${agent.program} ${agent.words.map((word) => (word.includes(' ') ? `"${word}"` : word)).join(' ')}`);
  return new Promise((done, failed) => {
    const child = spawn(join(BIN, agent.program), agent.words, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE_MS });
    let stdout = '', stderr = '';
    child.stdout.on('data', (chunk) => { stdout += chunk; });
    child.stderr.on('data', (chunk) => { stderr += chunk; });
    child.on('error', failed);
    child.on('close', (code) => done({ code, stdout, stderr }));
  });
}

// What the config must be once Prism is out of it. An agent may write into the file while it runs: then its words stay. Of
// these Claude Code does, whose file is plain JSON.
function keptOf(own, installed, used) {
  if (used === installed) {
    return own === undefined
      ? { means: 'no file, as before', holds: (text) => text === undefined }
      : { means: `the ${own.length} bytes of before`, holds: (text) => text === own };
  }
  const without = (text) => {
    const value = JSON.parse(text);
    delete value.mcpServers?.prism;
    if (Object.keys(value.mcpServers ?? {}).length === 0) delete value.mcpServers;
    return value;
  };
  const members = Object.keys(without(used));
  return {
    means: `${members.length} members that the agent has written meanwhile, and nothing of Prism's`,
    holds: (text) => text !== undefined && isDeepStrictEqual(JSON.parse(text), without(used)),
  };
}

async function calls(home, port) {
  const token = readFileSync(join(home, '.prism/http-mcp-token'), 'utf8').trim();
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
  const line = /^prism_requests_total\{destination="demo",method="tools\/call",status="2xx"\} (\d+)$/m;
  return Number(line.exec(await answer.text())?.[1] ?? 0);
}

// Everything that was started here, by us or by whom we started, has this home. What is on its way out gets the time to go.
async function leftBehind(home) {
  const deadline = Date.now() + VANISH_MS;
  for (;;) {
    const found = processes().filter(({ environment }) => environment.includes(`HOME=${home}`));
    if (found.length === 0 || Date.now() > deadline) return found;
    await sleep(50);
  }
}

function processes() {
  const text = (pid, file) => { try { return readFileSync(`/proc/${pid}/${file}`, 'utf8'); } catch { return ''; } };
  const pids = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return pids.map((pid) => ({ pid: Number(pid), name: text(pid, 'comm').trim(), environment: text(pid, 'environ').split('\0') }));
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}
