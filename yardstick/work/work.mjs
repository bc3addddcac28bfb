// An agent at work in the sandbox, with the tools that people use.
//   node work.mjs PRISM WORK TABLE
import { readFileSync, rmSync } from 'node:fs';
import { Agent } from './lib/agent.mjs';
import { Daemon } from './lib/daemon.mjs';
import { until } from './lib/wait.mjs';
import { PROGRAM, Person } from './person.mjs';
import { MISTAKEN } from './projects.mjs';
import { Table } from './table.mjs';

const [prism, work, file] = process.argv.slice(2);
const SCOPES = ['read:files', 'write:files', 'edit:buffers', 'detect:errors', 'exec:terminal', 'run:commands', 'build:project', 'test:code', 'manage:plugins'];
const ALONE = 'none';
const ONLINE = 'all';

const person = new Person(work);
await person.prepare();
const daemon = new Daemon(prism, work, ['[gate]', 'rate_limit = 200', 'max_edit_bytes = "1MB"']);
Object.assign(daemon.env, person.env);
await daemon.start();
const table = new Table();
const agent = await new Agent(daemon, 'works').enter(SCOPES, [`${work}/projects`]);

// Runs something to its end, and says what it came to.
async function does(verb, args, by = agent) {
  const answer = await by.act(verb, args);
  if (answer.status !== 'ok') throw new Error(`${verb}: ${answer.status} ${JSON.stringify(answer.data)}`);
  return answer.data;
}

const told = (data) => `${data.exit_code ?? 'no exit code'}: ${JSON.stringify(data.fence)} ${data.stdout.slice(-900)} ${data.stderr.slice(-1200)}`;
const answer = (data, result) => ({ fence: data.fence, took: data.duration_ms, result });

async function command(words, options = {}, by = agent) {
  const data = await does('exec_command', { command: words, timeout_ms: 80_000, ...options }, by);
  if (data.exit_code !== 0) throw new Error(told(data));
  return answer(data, 'ok');
}

// What cannot be done without the network says that, and which scope has it.
async function lonely(verb, args) {
  const data = await does(verb, args);
  if ((data.exit_code ?? 1) === 0) throw new Error('it was done, without any network');
  if (!data.fence.hint?.includes('network:all')) throw new Error(`nothing says what helps: ${told(data)}`);
  return answer(data, 'refused, and names network:all');
}

async function build(args, by = agent) {
  const data = await does('build_project', args, by);
  if (!data.is_ok) throw new Error(told(data));
  return answer(data, 'ok');
}

async function tests(count, args, by = agent) {
  const data = await does('run_tests', args, by);
  if (!data.is_ok || data.tests?.passed !== count) throw new Error(`${JSON.stringify(data.tests)} ${told(data)}`);
  return answer(data, `${count} passed`);
}

// A row of these, if the person has them.
function row(tool, what, run, { needs = tool, network = ALONE } = {}) {
  const lack = person.lacks[needs];
  return lack ? table.skip(tool, what, lack) : table.row(tool, what, network, run);
}

const cwd = (name) => person.root(name);
const registry = person.registry ? { npm_config_registry: person.registry } : {};

async function commands() {
  await row('cargo', 'build, a dependency that is cached', () => build({ cwd: cwd('crate') }));
  await row('cargo', 'test, the same', () => tests(1, { cwd: cwd('crate') }));
  await row('cargo', 'test, a dependency that is cached and not unpacked', () => tests(1, { cwd: cwd('packed') }));
  await row('cargo', `build, a dependency that is not cached (${person.fetched})`, () => lonely('build_project', { cwd: cwd('fetched') }));

  await row('npm', 'ci, from the cache', () => command('npm ci', { cwd: cwd('page') }));
  await row('npm', 'test (node:test)', () => tests(1, { cwd: cwd('page') }));
  await row('npm', 'install of a package that is not cached', () => lonely('exec_command', { command: 'npm install --no-save prism-is-not-a-package', cwd: cwd('page') }));
  await row('npx', `${PROGRAM}, from the cache`, async () => {
    const data = await does('exec_command', { command: `npx --yes ${PROGRAM} --range '>=1' 0.1.0 1.2.3`, cwd: cwd('go'), env: registry });
    if (data.stdout.trim() !== '1.2.3') throw new Error(told(data));
    return answer(data, 'ok');
  });
  const browser = { cwd: cwd('page'), env: { BROWSER_UNDER_TEST: process.env.WORK_CHROMIUM ?? '' } };
  await row('playwright', 'a page on 127.0.0.1 in Chromium', () => command('npx playwright test', browser));

  await row('pytest', 'a venv in the project', () => tests(3, { cwd: cwd('inside') }));
  await row('pytest', 'a venv outside of it, on PATH', () => tests(3, { cwd: cwd('outside') }), { needs: 'outside' });
  await row('pytest', 'a prefix as conda makes it', () => command([`${person.prefix}/bin/python`, '-m', 'pytest', '-q', '-p', 'no:cacheprovider'], { cwd: cwd('outside') }), { needs: 'conda' });
  await row('pip', 'install of a package that is not there', () => lonely('exec_command', { command: 'python3 -m pip install prism-is-not-a-package' }), { needs: 'outside' });

  await row('go', 'build', () => build({ cwd: cwd('go') }));
  await row('go', 'test', () => tests(1, { cwd: cwd('go') }));
  await row('go', 'test, a module that is cached', () => tests(1, { cwd: cwd('module') }));
  await row('go', 'get of a module that is not cached', () => lonely('exec_command', { command: 'go get example.org/nothing@v1.0.0', cwd: cwd('go') }));
  await row('cmake', 'cmake, make and ctest', () => command('cmake -S . -B build && cmake --build build && ctest --test-dir build', { cwd: cwd('cmake') }));

  await row('network', 'curl, to anywhere', () => lonely('exec_command', { command: 'curl --silent --show-error https://example.org/' }), { needs: 'curl' });
  const lookup = 'import socket; socket.getaddrinfo("example.org", 443)';
  await row('network', "a name's address", () => lonely('exec_command', { command: ['python3', '-c', lookup] }));

  const online = await new Agent(daemon, 'online').enter([...SCOPES, 'network:all'], [`${work}/projects`]);
  const there = { network: ONLINE };
  await row('cargo', 'build, with network:all, what is not cached', () => build({ cwd: cwd('fetched') }, online), { ...there, needs: 'cargo' });
  const fetched = { cwd: cwd('page'), env: registry };
  await row('npm', 'install, with network:all, what is not cached', () => command('npm install --no-save left-pad@1.3.0', fetched, online), there);
  rmSync(`${cwd('crate')}/target`, { recursive: true, force: true });
  await row('cargo', 'test, with network:all, what is cached', () => tests(1, { cwd: cwd('crate') }, online), { ...there, needs: 'cargo' });
}

// A mistake is found, and is gone when it is corrected.
async function looked([name, { language, main, mistake }]) {
  const path = `${cwd(`wrong-${language}`)}/${main}`;
  const errors = (expected) => until(`${expected ? 'the mistake is found' : 'it is gone'}`, async () => {
    const data = await agent.act('get_errors', { path, wait_ms: 20_000 });
    if (data.status !== 'ok' && !data.data.details?.retry_after_ms) throw new Error(`${data.status} ${JSON.stringify(data.data)}`);
    const { diagnostics = [], is_complete, analyzed_version, version } = data.data;
    if (!is_complete || analyzed_version !== version) throw new Error(JSON.stringify(data.data).slice(0, 500));
    return diagnostics.some((one) => one.severity === 'error') === expected && data.data;
  }, 120_000);
  await row(name, 'an error is found, and gone when it is corrected', async () => {
    const begun = performance.now();
    const { version } = await does('open_file', { path });
    await errors(true);
    const took = performance.now() - begun;
    await does('edit_buffer', { path, version, edits: [{ old_text: mistake[0], new_text: mistake[1] }] });
    await errors(false);
    await does('save_buffer', { path });
    const list = await agent.act('manage_plugins', { do: 'list' }, false);
    const server = list.data.servers?.find((one) => one.language === language && one.pid);
    if (!server || !readFileSync(path, 'utf8').includes(mistake[1])) throw new Error(JSON.stringify(list.data).slice(0, 500));
    return { fence: server.fence, took };
  });
}

// Servers wait much of their time, and nothing of theirs is asked about.
async function servers() {
  for (const entry of Object.entries(MISTAKEN)) await looked(entry);
}

await Promise.all([commands(), servers()]);
await daemon.stop();
table.finish(file);
