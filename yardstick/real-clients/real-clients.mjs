// Real agents find Prism by what `prism install` wrote, and call a tool through it.
//   node real-clients.mjs PRISM AGENT...
// Each agent has a home of its own, with a daemon of its own. The last line is the figure.
import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { AGENTS } from './agents.mjs';
import { BIN, named, openHome } from './home.mjs';
import { startModel } from './model.mjs';
import { quotes } from './scripts.mjs';

// OpenCode takes half a minute for its first start.
const PATIENCE_MS = 180_000;

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
  const phrase = `said-${randomBytes(6).toString('hex')}`;
  const model = await startModel(quotes(phrase));
  const home = await openHome(prism, { told: (line) => console.log(`     $ ${line}`) });
  const config = join(home.path, agent.config);
  const read = () => (existsSync(config) ? readFileSync(config, 'utf8') : undefined);
  try {
    const own = agent.own(model.url);
    mkdirSync(dirname(config), { recursive: true });
    if (own !== undefined) writeFileSync(config, own, { mode: 0o600 });

    home.type('add', 'demo', '--', prism, 'demo-server');
    home.type('install', name);
    home.type('uninstall', name);
    check(name, 'unused, it is undone to the byte', read() === own, own === undefined ? 'no file, as before' : `${own.length} bytes`);
    home.type('install', name);
    const installed = read();
    check(name, 'the config names Prism', installed?.includes(`http://127.0.0.1:${home.port}/mcp`) === true, agent.config);
    home.type('serve', '--detach');

    const ran = await ask(agent, { ...home.env, ...agent.env(model.url) }, home.path);
    const offered = [...new Set(model.requests.flatMap(({ tools }) => tools))];
    const ours = offered.filter((tool) => tool.includes('prism'));
    const tool = ours.find((one) => one.endsWith('demo__echo'));
    check(name, 'the model is offered the tools', tool !== undefined, `${tool ?? 'not echo'}, ${ours.length} of Prism's`);
    check(name, 'the tool is called through Prism', (await calls(home)) === 1, 'one tools/call at demo in /metrics');
    const result = model.requests.flatMap(({ results }) => results).find(({ text }) => text.includes(phrase));
    check(name, 'its result comes back to the model', result !== undefined, result ? JSON.stringify(result.text) : ran.stderr);
    let said;
    try { said = agent.says(ran.stdout); } catch { said = undefined; }
    check(name, 'and out on stdout', ran.code === 0 && said?.includes(phrase) === true, said ? JSON.stringify(said) : `exit ${ran.code}: ${ran.stdout}`);

    const used = read();
    home.type('uninstall', name);
    const kept = keptOf(own, installed, used);
    check(name, 'used, the rest of it stays', kept.holds(read()), kept.means);
    const left = read();
    home.type('install', name);
    home.type('uninstall', name);
    check(name, 'installed anew, it is undone to the byte', read() === left, `${left?.length ?? 0} bytes`);

    home.type('stop');
    const alive = await home.leftBehind();
    check(name, 'no process is left', alive.length === 0, named(alive));
  } finally {
    const ended = await home.close();
    model.close();
    if (ended.length > 0) console.log(`     ended what was left: ${named(ended)}`);
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

async function calls(home) {
  const answer = await home.fetch('/metrics');
  const line = /^prism_requests_total\{destination="demo",method="tools\/call",status="2xx"\} (\d+)$/m;
  return Number(line.exec(await answer.text())?.[1] ?? 0);
}
