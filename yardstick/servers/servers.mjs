// The check itself.   node servers.mjs URL DIR     (YARD_DAEMON: the hub's pid; YARD_AUTH: an Authorization header)
// In each era one client, of the official SDK: it lists, calls every server, and calls all of them while one is killed.
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, dir] = process.argv.slice(2);
const daemon = Number(process.env.YARD_DAEMON);
const headers = process.env.YARD_AUTH ? { Authorization: process.env.YARD_AUTH } : {};
const SERVERS = ['everything', 'files', 'memory', 'time', 'git'];
const LOST = ['dead', 'mute'];
const LONG = 'everything__trigger-long-running-operation';
/** The first list may wait for the hub's patience (5 s), and a busy machine. */
const FIRST_LIST_MS = 10_000;
/** Until the slowest of the servers has started. */
const STARTED_MS = 60_000;
const STEP_MS = 30_000;

/** Real calls, each with what must come back. `n` makes every call different from the one before. */
const CALLS = {
  everything: async (call, n) => has(await call('everything__echo', { message: `yard ${n}` }), `Echo: yard ${n}`),
  files: async (call, n) => {
    const file = path.join(dir, 'files', `note-${n}.txt`);
    await call('files__write_file', { path: file, content: `yard ${n}\n` });
    if (readFileSync(file, 'utf8') !== `yard ${n}\n`) throw new Error(`${file} was not written`);
    has(await call('files__read_text_file', { path: file }), `yard ${n}`);
  },
  memory: async (call, n) => {
    const entity = { name: `yard-${n}`, entityType: 'yardstick', observations: [`seen ${n}`] };
    await call('memory__create_entities', { entities: [entity] });
    has(await call('memory__open_nodes', { names: [entity.name] }), `seen ${n}`);
  },
  time: async (call) => {
    const noon = { source_timezone: 'Asia/Tokyo', time: '12:00', target_timezone: 'Asia/Kolkata' };
    has(await call('time__convert_time', noon), '08:30:00+05:30');
  },
  git: async (call) => {
    const log = await call('git__git_log', { repo_path: path.join(dir, 'repository'), max_count: 1 });
    has(log, "The yard's first commit");
  },
};

function has(result, text) {
  const said = JSON.stringify(result.content) + JSON.stringify(result.structuredContent ?? '');
  if (result.isError || !said.includes(JSON.stringify(text).slice(1, -1))) throw new Error(`no ${JSON.stringify(text)} in ${said.slice(0, 200)}`);
}

async function inTime(promise, ms) {
  const late = new AbortController();
  const limit = sleep(ms, null, { signal: late.signal }).then(() => { throw new Error(`no answer in ${ms} ms`); });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    late.abort();
    limit.catch(() => {});
  }
}

async function until(ok, ms, why) {
  for (const end = Date.now() + ms; !(await ok()); await sleep(100)) if (Date.now() > end) throw new Error(why());
}

/** The processes below the hub's that run this server. */
function processes(server) {
  const parents = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      parents.set(pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch { /* it has ended */ }
  }
  const below = (pid) => pid === daemon || (parents.has(pid) && below(parents.get(pid)));
  return [...parents.keys()].filter((pid) => {
    try {
      return pid !== daemon && below(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(server);
    } catch { return false; }
  });
}

const table = [];
const faults = [];
async function check(row, column, act) {
  row[column] ??= null;
  try {
    row[column] = String((await act()) ?? 'ok');
  } catch (error) {
    row[column] = 'NO';
    faults.push(`${row.era} ${row.server}, ${column}: ${String(error?.message ?? error).split('\n')[0]}`);
  }
}

async function era(mode) {
  const client = new Client({ name: 'yard-servers', version: '1.0.0' }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await inTime(client.connect(transport), STEP_MS);
  const name = client.getProtocolEra();
  if (name !== (mode === 'auto' ? 'modern' : 'legacy')) throw new Error(`connected in the ${name} era`);
  const rows = Object.fromEntries([...SERVERS, ...LOST].map((server) => [server, { era: name, server }]));
  table.push(...Object.values(rows));
  const call = (tool, args, options) => inTime(client.callTool({ name: tool, arguments: args }, { timeout: STEP_MS, ...options }), STEP_MS);

  // The list: first as it is while nobody is waited for any longer, then with all that start slowly.
  let tools = [], unavailable = [];
  const list = async () => {
    const answer = await client.request({ method: 'tools/list', params: {} });
    tools = answer.tools.map((tool) => tool.name);
    unavailable = answer._meta?.['prism/unavailable'] ?? [];
  };
  const of = (server) => tools.filter((tool) => tool.startsWith(`${server}__`)).length;
  await check(rows.mute, 'listed', async () => {
    await inTime(list(), FIRST_LIST_MS);
    return 'not waited for';
  });
  await until(async () => (await list(), SERVERS.every(of)), STARTED_MS, () => `not listed: ${SERVERS.filter((s) => !of(s))}`).catch(() => {});
  for (const server of SERVERS) {
    await check(rows[server], 'listed', () => {
      if (!of(server)) throw new Error(`no tool; unavailable: ${JSON.stringify(unavailable)}`);
      return `${of(server)} tools`;
    });
  }
  for (const server of LOST) {
    await check(rows[server], 'unavailable', () => {
      const said = unavailable.find((one) => one.destination === server);
      if (!said?.why) throw new Error(`not named in ${JSON.stringify(unavailable)}`);
      return said.why.slice(0, 60);
    });
  }
  await check(rows.everything, 'unavailable', () => {
    const other = unavailable.filter((one) => !LOST.includes(one.destination));
    if (other.length) throw new Error(`named, too: ${JSON.stringify(other)}`);
    return '-';
  });

  // Some offer more to clients that can do more: from the first list on, and to those only.
  await check(rows.everything, 'for the able', async () => {
    const able = new Client({ name: 'yard-able', version: '1.0.0' }, { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode } });
    await inTime(able.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })), STEP_MS);
    try {
      const more = ['trigger-sampling-request', 'trigger-elicitation-request'].map((tool) => `everything__${tool}`);
      const offered = async () => (await able.request({ method: 'tools/list', params: {} })).tools.map((tool) => tool.name);
      let names = [];
      await until(async () => (names = await offered()).some((tool) => tool.startsWith('everything__')), STARTED_MS, () => 'not listed');
      const hidden = more.filter((tool) => !names.includes(tool));
      if (hidden.length) throw new Error(`not in its first list: ${hidden}`);
      const shown = more.filter((tool) => tools.includes(tool));
      if (shown.length) throw new Error(`shown to a client that cannot be asked: ${shown}`);
      return `${names.filter((tool) => tool.startsWith('everything__')).length} tools`;
    } finally {
      await able.close();
    }
  });

  for (const server of SERVERS) await check(rows[server], 'call', () => CALLS[server](call, `${name}-1`));
  await check(rows.everything, 'progress', async () => {
    let notes = 0;
    const result = await call(LONG, { duration: 1, steps: 4 }, { onprogress: () => notes++ });
    has(result, 'Long running operation completed');
    if (notes !== 4) throw new Error(`${notes} notes of 4`);
    return `${notes} notes`;
  });

  // One dies in the middle of a call, while all others are being called.
  let dies, killed = [], over = false;
  const kill = () => {
    if (killed.length) return;
    killed = processes('server-everything');
    killed.forEach((pid) => process.kill(pid, 'SIGKILL'));
  };
  const long = call(LONG, { duration: 20, steps: 40 }, { onprogress: kill });
  const settled = long.then((result) => { dies = { result }; }, (error) => { dies = { error }; });
  const others = SERVERS.slice(1).map((server) => check(rows[server], 'beside the kill', async () => {
    let calls = 0, after = 0;
    while (!over || (killed.length && after < 2)) {
      await CALLS[server](call, `${name}-beside-${calls++}`);
      if (killed.length) after++;
    }
    return `${calls} calls`;
  }));
  await settled;
  over = true;
  await check(rows.everything, 'beside the kill', () => {
    if (!killed.length) throw new Error(`no process to kill (${JSON.stringify(dies.result ?? dies.error?.message)})`);
    if (dies.result && !dies.result.isError) throw new Error(`its call was answered: ${JSON.stringify(dies.result)}`);
    return `failed: ${String(dies.error?.message ?? JSON.stringify(dies.result.content)).slice(0, 80)}`;
  });
  await Promise.all(others);
  for (const server of SERVERS) await check(rows[server], 'afterwards', () => CALLS[server](call, `${name}-2`));
  if (mode !== 'auto') await inTime(transport.terminateSession(), STEP_MS);
  await client.close();
}

for (const mode of ['legacy', 'auto']) {
  try {
    await era(mode);
  } catch (error) {
    faults.push(`${mode}: ${error?.message ?? error}`);
  }
}
const columns = ['era', 'server', 'listed', 'unavailable', 'for the able', 'call', 'progress', 'beside the kill', 'afterwards'];
console.log(`| ${columns.join(' | ')} |\n|${'---|'.repeat(columns.length)}`);
for (const row of table) console.log(`| ${columns.map((column) => row[column] ?? '-').join(' | ')} |`);
faults.forEach((fault) => console.log(fault));
const made = table.flatMap((row) => columns.slice(2).map((column) => row[column]).filter(Boolean));
console.log(`servers: ${made.filter((cell) => cell !== 'NO').length}/${made.length} checks passed${faults.length ? '' : ', all whole'}`);
process.exit(faults.length ? 1 : 0);
