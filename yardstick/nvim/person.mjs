// A person at a Neovim in a terminal, and an agent in the same files: neither loses anything, and whatever breaks comes
// back.
//   node person.mjs EDITOR-DIR PRISM WORK NVIM INIT
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync, realpathSync } from 'node:fs';

const [dir, prism, work, nvim, init] = process.argv.slice(2);
const { Agent } = await import(`${dir}/lib/agent.mjs`);
const { Daemon } = await import(`${dir}/lib/daemon.mjs`);
const { until } = await import(`${dir}/lib/wait.mjs`);

const project = `${realpathSync(work)}/project`;
mkdirSync(project);
const daemon = new Daemon(prism, work);
const lines = Array.from({ length: 100 }, (_, i) => `line ${i}`);
writeFileSync(`${project}/a.txt`, `${lines.join('\n')}\n`);

const results = [];
function check(what, is_so, more = '') {
  results.push(is_so);
  console.log(`${is_so ? 'ok    ' : 'BROKEN'} ${what}${more ? `: ${more}` : ''}`);
}

// A Neovim on a terminal. What is written to its stdin are the person's keys. One that runs with libraries of its own
// cannot start the process behind its window itself (APART); then the window comes later, as with `nvim --remote-ui`.
const xdg = Object.fromEntries(['CONFIG', 'DATA', 'STATE', 'CACHE'].map((name) => [`XDG_${name}_HOME`, `${work}/xdg`]));
const env = { ...daemon.env, ...xdg, TERM: 'xterm' };
let opened = 0;

async function open(file) {
  let words = [nvim, '-u', init, '-i', 'NONE', '-n', file];
  if (process.env.APART) {
    opened += 1;
    const socket = `${work}/nvim-${opened}.sock`;
    spawn(nvim, ['--headless', '--listen', socket, ...words.slice(1)], { cwd: project, env, stdio: 'ignore' });
    await until('Neovim listens', () => existsSync(socket));
    words = [nvim, '--server', socket, '--remote-ui'];
  }
  const terminal = 'import os,pty,sys\nos.chdir(sys.argv[1])\npty.spawn(sys.argv[2:])';
  const child = spawn('python3', ['-c', terminal, project, ...words], { env, stdio: ['pipe', 'ignore', 'ignore'] });
  // Its Neovim may be killed before it.
  child.stdin.on('error', () => {});
  return { keys: (keys) => child.stdin.write(keys) };
}

const rest = (ms) => new Promise((done) => { setTimeout(done, ms); });
// An escape that something follows at once would be the Alt key.
const escape = async () => { editor.keys('\x1b'); await rest(200); };

const plugin = async () => (await daemon.seen('/mcp/plugins')).plugins.find((one) => one.plugin === 'neovim');
const owner = (name, limit) => until(name, async () => {
  const one = await plugin();
  return one?.state === 'owner' && one.ui && one;
}, limit);
const gone = (name, limit) => until(name, async () => (await plugin())?.state !== 'owner', limit);

await daemon.start();
let editor = await open('a.txt');
const first = await owner('Neovim owns its folder');
check('a Neovim in a terminal has a window', first.ui === true, first.connection);

const agent = new Agent(daemon, 'tester');
await agent.enter(['*'], [project]);
const path = `${project}/a.txt`;

// Typing and editing at the same time.
const typed = 'the quick brown fox jumps over the lazy dog and runs home';
editor.keys('ggA ');
const delays = [];
let heard = 0;
const person = (async () => {
  for (const letter of typed) {
    const at = performance.now();
    editor.keys(letter);
    const is_it = (event) => event.event === 'buffer_changed' && !event.by && event.at > at;
    const told = await until('the key is told', () => agent.events.slice(heard).find(is_it), 5000).catch(() => null);
    if (told) delays.push(told.at - at);
    heard = agent.events.length;
    await rest(15);
  }
})();
let edits = 0;
while (edits < 40) {
  const change = { old_text: `line ${50 + edits}\n`, new_text: `LINE ${50 + edits}\n` };
  const answer = await agent.act('edit_buffer', { path, edits: [change] });
  if (answer.status !== 'ok') console.log(JSON.stringify(answer));
  edits += 1;
}
await person;
await escape();
const now = (await agent.act('open_file', { path })).data.content.split('\n');
const is_edited = now.slice(50, 90).every((line, i) => line === `LINE ${50 + i}`);
check('neither loses a character', now[0] === `line 0 ${typed}` && is_edited, now[0]);
delays.sort((a, b) => a - b);
const p95 = delays[Math.floor(delays.length * 0.95)];
const median = delays[delays.length >> 1];
const measured = `${delays.length} keys, median ${median?.toFixed(1)} ms, p95 ${p95?.toFixed(1)} ms`;
// A busy machine is no fault of ours: it is said, and not failed for.
check('keys are told', delays.length > 40, measured);
console.log(`      ${measured}; promise p95 < 50 ms ${p95 < 50 ? 'kept' : 'NOT KEPT: measure again with nothing beside it'}`);

// All of it is in Neovim's undo, the person's and the agent's, in whatever order it came.
const content = async () => (await agent.act('open_file', { path })).data.content;
const [begun, done] = [`${lines.join('\n')}\n`, await content()];
editor.keys(':undo 0\r');
const is_undone = await until('it is undone', async () => (await content()) === begun, 5000).catch(() => false);
editor.keys('999\x12');
const is_redone = await until('it is made again', async () => (await content()) === done, 5000).catch(() => false);
check('the person can undo all of it, and make it again', is_undone && is_redone);

// The cursor is the real one.
editor.keys('10G03l');
const moved = await agent.event('cursor_moved', (event) => event.position.line === 9 && event.position.character === 3);
check('the cursor is told', moved.path === path);
editor.keys('v2l');
await agent.event('selection_changed', (event) => event.range.start.line === 9);
const selected = (await agent.act('get_selection')).data;
check('what is selected is told', selected.text === 'e 9', JSON.stringify(selected.text));
await escape();

// The person's own steps are not the agent's to undo, not even if the person, who is asked, does not mind.
editor.keys('Gomine');
await escape();
await until('it is there', async () => (await agent.act('open_file', { path })).data.content.includes('mine'));
const undone = await agent.act('edit_buffer', { path, undo: 1 }, true);
check('an agent does not undo what the person typed', undone.data.code === 'bad_arguments', undone.data.message);

// What an agent runs is shown as it runs, in a buffer that the person finds, and not where they are.
if ((await plugin()).shows) {
  await agent.act('exec_command', { command: ['sh', '-c', 'echo shown here; exit 3'] });
  await rest(500);
  const names = 'vim.api.nvim_buf_get_name(0), vim.api.nvim_buf_get_name(run.bufnr)';
  const text = 'table.concat(vim.api.nvim_buf_get_lines(run.bufnr, 0, -1, true))';
  editor.keys(`:lua local run = require('prism.runs').all[1] vim.fn.writefile({ ${names}, ${text} }, '${work}/shown')\r`);
  const shown = await until('the buffer is read', () => existsSync(`${work}/shown`), 5000).catch(() => false);
  const [current, name, printed] = shown ? readFileSync(`${work}/shown`, 'utf8').split('\n') : [];
  const is_shown = name?.startsWith('prism://tester/') && /shown here.*exit code 3/.test(printed);
  check('what an agent runs is shown', is_shown && current === path, `${name}: ${printed}`);
}

// The person answers an agent in Neovim, where the daemon lets them.
if ((await plugin()).decides) {
  const asker = new Agent(daemon, 'asker');
  await asker.ask(['read:files'], [project]);
  await rest(500);
  editor.keys(':PrismDecide\r1\r');
  await rest(500);
  editor.keys('2\r');
  const requests = async () => (await daemon.seen('/mcp/requests')).requests.filter((one) => one.agent_id === 'asker');
  const decided = async () => { const all = await requests(); return all[0]?.status !== 'PENDING' && all; };
  const [request] = await until('it is decided', decided, 5000).catch(() => requests());
  const told = `${request?.status} by ${request?.approved_by}`;
  check('the person allows in Neovim what an agent asks for', request?.status === 'APPROVED', told);
}

// Neovim hangs: it is not taken for alive, and comes back.
editor.keys(':lua vim.loop.sleep(30000)\r');
await gone('a Neovim that hangs owns nothing', 28_000);
check('a Neovim that hangs owns nothing', true);
const meanwhile = (await agent.act('open_file', { path })).data;
const is_kept = meanwhile.is_dirty === true && meanwhile.content.includes('mine');
check('its unsaved text is in the built-in editor meanwhile', is_kept);
await owner('it is back', 40_000);
const back = (await agent.act('open_file', { path })).data;
check('it is back with its text', back.content === meanwhile.content && back.is_dirty === true);

// The daemon dies and comes again.
const killed = performance.now();
await daemon.stop('SIGKILL');
rmSync(`${daemon.home}/http-mcp.json`);
await daemon.start();
await owner('Neovim has found the new daemon');
check('it finds a new daemon', true, `${Math.round(performance.now() - killed)} ms`);
const other = new Agent(daemon, 'second');
await other.enter(['*'], [project]);
const after = (await other.act('open_file', { path })).data;
check('and still has its text', after.content === back.content && after.is_dirty === true);

// Neovim is killed with unsaved text.
await other.act('edit_buffer', { path, old_text: 'LINE 50\n', new_text: 'unsaved\n' });
process.kill((await plugin()).pid, 'SIGKILL');
await gone('it is noticed');
const left = (await other.act('open_file', { path })).data;
const has_all = left.content.includes('unsaved\n') && left.content.includes('mine');
check('unsaved text outlives a killed Neovim', left.is_dirty === true && has_all);
editor = await open('a.txt');
await owner('another Neovim has the folder');
const given = (await other.act('open_file', { path })).data;
check('and is put into the next one', given.is_dirty === true && given.content === left.content);
const saved = await other.act('save_buffer', { path });
check('which saves it', saved.data?.is_dirty === false && readFileSync(path, 'utf8') === left.content);
await escape();
editor.keys(':qa!\r');
await gone('it is left');
check('it leaves when it is left', true);
await daemon.stop();
console.log(`nvim: ${results.filter(Boolean).length}/${results.length}`);
process.exit(results.every(Boolean) ? 0 : 1);
