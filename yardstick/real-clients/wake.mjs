// Real agents that sit idle at their terminals are sent a signal, by each way that Prism has to reach them.
//   node wake.mjs PRISM AGENT...
// What counts is what the agent's model is asked: the bell must be in it, by itself. Then the model reads the signal and
// replies, and Prism's own books must say the same: the obligation is closed, and the path that they name is the one.
// Each row has a home, a daemon and a terminal of its own. The last line is the figure.
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { AGENTS } from './agents.mjs';
import { named, openHome } from './home.mjs';
import { SEATS } from './interactive.mjs';
import { startModel } from './model.mjs';
import { member, replied, started, waiting } from './scripts.mjs';
import { openTerminal, until } from './terminal.mjs';

// How long an agent may take to be at its prompt, to join, and to hear the bell.
const READY_MS = 90_000;
const JOIN_MS = 60_000;
const BELL_MS = 30_000;
const BOOKS_MS = 10_000;
// An agent that is not woken in this time is not woken: what wakes one does in a tenth of it.
const QUIET_MS = 5_000;

// Who asks. The second asks once the first has been answered: a way that wakes only once is none.
const SENDERS = ['donna', 'rachel'];
const BELLS = SENDERS.map((sender) => `Signal from ${sender}: Question. Use prism_signals_pending`);
// Nothing is tried again by time, nor looked at: what happens is the next signal's doing.
const SIGNALS_ONLY = 'climb_after = "10m"\nping_every = "10m"\n';
const DRAFT = 'half a thou';
const JOIN = 'Join the mesh.';
const WISH = 'Let the echo tool say hello.';
const THINK = 'Think about it.';

// What `hears` says is when the bell comes: `idle`, by itself; `blocked`, while the agent waits in the call; `turn`, at the end
// of a turn that was running; `asked`, with the first thing that the agent does next, because nothing else has woken it; `deaf`:
// there is nothing to ring at; `late`, nobody can be rung when the first signal comes, and the second one rings; `back`, its program
// has gone and comes back, and nobody has to send anything more (R-27, R-29). By its URL Claude Code has no session in MCP (2026-07-28), so it `claims` its session with each
// call; in a project it is given `prism stdio`, which tells who it is. A bell that may be `typed` at a prompt is so when the
// rungs below it have brought nothing.
const ROWS = [
  { agent: 'claude-code', path: 'wait', hears: 'idle', waits: true, claims: true },
  { agent: 'claude-code', path: 'hook', hears: 'idle', hooks: true, claims: true },
  { agent: 'claude-code', path: 'hook', hears: 'turn', hooks: true, claims: true },
  { agent: 'claude-code', path: 'tmux', hears: 'idle', typed: true, claims: true },
  { agent: 'claude-code', path: 'tmux', hears: 'late', typed: true, claims: true },
  { agent: 'claude-code', path: 'sse', hears: 'deaf', claims: true },
  { agent: 'claude-code', path: 'channel', then: 'piggyback', hears: 'asked', project: true },
  { agent: 'codex', path: 'codex_app_server', hears: 'idle', served: 'ws', note: 'ws' },
  { agent: 'codex', path: 'codex_app_server', hears: 'idle', served: 'unix', note: 'unix' },
  { agent: 'codex', path: 'codex_app_server', hears: 'late', served: 'unix' },
  { agent: 'codex', path: 'wait', hears: 'blocked', waits: true },
  { agent: 'codex', path: 'hook', hears: 'turn', hooks: true },
  { agent: 'codex', path: 'tmux', hears: 'idle', typed: true, note: 'when sse had brought nothing' },
  { agent: 'codex', path: 'sse', then: 'piggyback', hears: 'asked' },
  { agent: 'opencode', path: 'opencode', hears: 'idle', served: 'http', note: 'http' },
  { agent: 'opencode', path: 'opencode', hears: 'late', served: 'http' },
  { agent: 'opencode', path: 'opencode', hears: 'back', served: 'http' },
  { agent: 'opencode', path: 'wait', hears: 'blocked', waits: true },
  { agent: 'opencode', path: 'sse', then: 'piggyback', hears: 'asked' },
];

const HEARS = { idle: hearsIdle, blocked: hearsInTheCall, turn: hearsAfterTheTurn, asked: hearsWhenAsked, deaf: hearsNothing, late: hearsTheSecond, back: hearsOnceBack };

// Not once: whoever interrupts a group signals twice.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(2));
const prism = realpathSync(process.argv[2]);
const names = process.argv.slice(3);
let checks = 0, passed = 0;
const table = [];
for (const row of ROWS.filter(({ agent }) => names.includes(agent))) {
  const checked = checks;
  try {
    await oneRow(row);
  } catch (error) {
    check(row, 'ran to the end', false, error.message);
    shown(row.agent, row.path, 'FAIL', []);
  }
  if (checks === checked) check(row, 'was checked', false);
}
const heads = ['agent', 'path', 'woken', 'ms'];
const widths = heads.map((head, column) => Math.max(...[heads, ...table].map((line) => line[column].length)));
for (const line of [heads, ...table]) console.log(line.map((cell, column) => cell.padEnd(widths[column])).join(' | ').trimEnd());
console.log(`wake: ${passed}/${checks} checks passed`);
process.exitCode = passed === checks && checks > 0 ? 0 : 1;

function check({ agent, path, hears }, what, good, detail = '') {
  checks += 1;
  passed += good ? 1 : 0;
  console.log(`${good ? 'ok  ' : 'FAIL'} ${agent.padEnd(12)} ${`${path} (${hears})`.padEnd(24)} ${what}${detail ? `: ${detail}` : ''}`);
}

async function oneRow(row) {
  const seat = SEATS[row.agent];
  const home = await openHome(prism, { config: `[mesh]\n${row.typed ? 'tmux = true\n' : ''}${row.hears === 'late' ? SIGNALS_ONLY : ''}` });
  const work = join(home.path, 'work');
  let sat, terminal, thought;
  const thinking = new Promise((done) => { thought = done; });
  const model = await startModel(member({
    start: async (text) => ({
      agent: 'mike',
      surface: seat.surface,
      workspace: work,
      surface_session: toldSession(text),
      wake: { ...(await sat.contact?.(text)), tmux: row.typed ? { ...terminal.pane, command: sat.command } : undefined },
    }),
    claims: row.claims,
    waits: row.waits ? { timeout_s: 120 } : undefined,
    bells: BELLS,
    wish: WISH,
    thinks: { about: THINK, until: thinking },
  }));
  try {
    mkdirSync(work);
    seat.prepare({ home: home.path, work, model: model.url });
    const env = { ...home.env, ...AGENTS[row.agent].env(model.url), ...seat.env };
    home.type('add', 'demo', '--', prism, 'demo-server');
    home.typeIn(work, 'install', row.agent, ...(row.hooks ? ['--hooks'] : []), ...(row.project ? ['--project'] : []));
    home.type('serve', '--detach');
    home.sessions = [];
    for (const agent of SENDERS) home.sessions.push((await mesh(home, 'start', { agent, surface: 'script' })).session);
    sat = await seat.sit({ home, env, work, served: row.served });
    terminal = openTerminal(home, env, work, sat.words);
    const agent = { home, model, terminal, idle: () => seat.idle({ home: home.path, screen: terminal.screen, sat }) };
    agent.leave = async () => (row.typed ? drafts(terminal) : leaves(agent, seat, sat, (words) => (terminal = openTerminal(home, env, work, words))));
    await seat.greet?.(terminal, row.hooks);
    await until(`${row.agent} at its prompt`, READY_MS, () => seat.ready(terminal.screen()));
    await joins(agent);
    if (row.hooks) check(row, 'a hook has told it how to start', model.requests.some(({ text }) => toldSession(text)));
    await HEARS[row.hears](row, agent, thought);
  } catch (error) {
    throw new Error([error.message, ...seen(terminal), ...(await noted(home))].join('\n     | '));
  } finally {
    thought();
    const ended = await home.close();
    model.close();
    check(row, 'no process is left', ended.length === 0, named(ended));
  }
}

// For whoever has to find out why: what the person would see, and what Prism has noted.
function seen(terminal) {
  return (terminal?.screen() ?? 'no terminal').split('\n').filter((line) => line.trim()).slice(-25);
}

async function noted(home) {
  const told = await mesh(home, 'diagnostics', { agent: 'mike' }).catch((error) => ({ error: error.message }));
  const { recent_bells: bells = [], ...rest } = told;
  return [JSON.stringify(rest), ...bells.map((bell) => JSON.stringify(bell))];
}

// Has the agent join. It may be at its prompt before it has Prism's tools; a person would ask again, too.
async function joins({ model, terminal, idle }) {
  const deadline = Date.now() + JOIN_MS;
  while (!model.requests.some(({ said }) => said?.tool)) {
    if (Date.now() > deadline) throw new Error('the model was never offered the tools of the mesh');
    const before = model.requests.length;
    await terminal.type(JOIN, () => isAsked({ model }, before, JOIN));
    await until('it has answered', JOIN_MS, async () => model.requests.some(({ said }) => said?.tool) || (await idle()));
  }
  await until('it has joined', JOIN_MS, () => started(model.requests));
}

// Nobody types anything; the bell starts the turn.
async function hearsIdle(row, agent) {
  const took = [];
  for (const time of SENDERS.keys()) {
    if (row.waits) await until('its wait is in the background', JOIN_MS, () => waiting(agent.model.requests, time));
    await until('it is idle', JOIN_MS, agent.idle);
    await until(`Prism reaches it by ${row.path}`, JOIN_MS, () => reaches(agent, row.path));
    const sent = await send(agent, time);
    took.push((await heard(row, agent, sent)) - sent.at);
  }
  shown(row.agent, row.path, `yes, from idle${row.note ? ` (${row.note})` : ''}`, took);
}

async function hearsInTheCall(row, agent) {
  const took = [];
  for (const time of SENDERS.keys()) {
    await until('it waits', JOIN_MS, () => reaches(agent, row.path));
    const sent = await send(agent, time);
    took.push((await heard(row, agent, sent)) - sent.at);
  }
  shown(row.agent, row.path, 'yes, while it blocks in the call', took);
}

// The turn ends when the signal is there; that is what its milliseconds count from.
async function hearsAfterTheTurn(row, agent, thought) {
  await until('it is idle', JOIN_MS, agent.idle);
  const before = agent.model.requests.length;
  await agent.terminal.type(THINK, () => isAsked(agent, before, THINK));
  const sent = await send(agent, 0);
  const answered = performance.now();
  thought();
  shown(row.agent, row.path, 'yes, at the end of its turn', [(await heard(row, agent, sent)) - answered]);
}

// The bell of MCP itself arrives, and the agent does nothing about it; so the next tool result has it.
async function hearsWhenAsked(row, agent) {
  await until('it is idle', JOIN_MS, agent.idle);
  await until(`Prism reaches it by ${row.path}`, JOIN_MS, () => reaches(agent, row.path));
  const before = agent.model.requests.length;
  const sent = await send(agent, 0);
  const rung = await until('Prism has rung', BOOKS_MS, async () => {
    const debt = await owed(agent, sent);
    return debt?.last_wake_path === row.path && debt;
  });
  check(row, 'the bell is rung', rung.last_wake_result === 'rang', `${rung.last_wake_path}: ${rung.last_wake_result}`);
  await startsNoTurn(row, agent, before);
  await agent.terminal.type(WISH, () => isAsked(agent, before, WISH));
  const bell = await heard({ ...row, path: row.then }, agent, sent);
  const called = agent.model.requests.find(({ text, said }) => text.includes(WISH) && said?.tool);
  shown(row.agent, row.then, 'yes, with its next tool result', [bell - called.at]);
}

// It has a stream, and listens on it for lists that change, and for nothing of the mesh.
async function hearsNothing(row, agent) {
  await until('it is idle', JOIN_MS, agent.idle);
  const before = agent.model.requests.length;
  const sent = await send(agent, 0);
  const debt = await until('Prism has tried', BOOKS_MS, async () => {
    const found = await owed(agent, sent);
    return found?.last_wake_result && found;
  });
  check(row, 'there is nothing to ring at', debt.last_wake_result === 'uncaptured', `${debt.last_wake_path}: ${debt.last_wake_result}`);
  await startsNoTurn(row, agent, before);
}

// Somebody has begun to write at its prompt. Returns what takes it back.
async function drafts(terminal) {
  terminal.press(DRAFT);
  await until('the draft is on the screen', READY_MS, () => terminal.screen().includes(DRAFT));
  return async () => {
    terminal.press('C-u');
    await until('the draft is gone', READY_MS, () => !terminal.screen().includes(DRAFT));
  };
}

// The program that is rung has nobody of that name, or is gone. Returns what brings the agent back.
async function leaves(agent, seat, sat, open) {
  const words = await sat.alone(agent.terminal);
  return async () => {
    agent.terminal = open(words);
    await until('it is back', READY_MS, () => seat.isBack({ screen: agent.terminal.screen, sat }));
  };
}

// The model's first request since then with the bell in it, which may be for more than one signal.
function shownBell({ model }, before) {
  return model.requests.slice(before).find(({ text }) => text.includes(`Signal from ${SENDERS[0]}: Question`));
}

async function rungOnce(row, agent, state, id) {
  return until(`Prism has ${state}`, BELL_MS, async () => {
    const { recent_bells: bells = [] } = await mesh(agent.home, 'diagnostics', { agent: 'mike' });
    const found = bells.find((bell) => bell.path === row.path && (!id || bell.signal_id === id));
    return found && (state === 'missed') === ['send-failed', 'uncaptured'].includes(found.result) && found;
  });
}

// A ring that did not ring has spent nothing: the next signal tries the same path again.
async function hearsTheSecond(row, agent) {
  await until('it is idle', JOIN_MS, agent.idle);
  const comesBack = await agent.leave();
  const first = await send(agent, 0);
  const missed = await rungOnce(row, agent, 'missed', first.id);
  check(row, 'the first signal finds nobody', true, `${missed.path}: ${missed.result}`);
  check(row, 'its path is not healthy', !(await reaches(agent, row.path)));
  await comesBack();
  const before = agent.model.requests.length;
  const second = await send(agent, 0);
  const rang = await rungOnce(row, agent, 'rung', second.id);
  check(row, 'the second signal rings', rang.result === 'rang', `${rang.path}: ${rang.result}`);
  const request = await until('the model is asked with the bell in it', BELL_MS, () => shownBell(agent, before));
  check(row, 'the model is asked, and shown the bell', true);
  shown(row.agent, row.path, `yes, by the second signal; the first: ${missed.result}`, [request.at - second.at]);
}

// A path that is dead is said to be, before anybody needs it; when it is back, it is rung for what waits.
async function hearsOnceBack(row, agent) {
  await until('it is idle', JOIN_MS, agent.idle);
  await until(`Prism reaches it by ${row.path}`, JOIN_MS, () => reaches(agent, row.path));
  const comesBack = await agent.leave();
  const died = performance.now();
  await until('its path is not healthy', JOIN_MS, async () => !(await reaches(agent, row.path)));
  check(row, 'a dead path is not healthy, with no signal sent', true, `seen after ${((performance.now() - died) / 1000).toFixed(1)} s`);
  const sent = await send(agent, 0);
  await rungOnce(row, agent, 'missed', sent.id);
  const before = agent.model.requests.length;
  await comesBack();
  const back = performance.now();
  const request = await until('the model is asked with the bell in it', JOIN_MS, () => shownBell(agent, before));
  check(row, 'back again, it is rung for what waits', true);
  shown(row.agent, row.path, 'yes, once it is back', [request.at - back]);
}

async function startsNoTurn(row, agent, before) {
  const woken = await until('a turn', QUIET_MS, () => agent.model.requests.slice(before).some(({ tools }) => tools.length > 0)).catch(() => false);
  check(row, 'it starts no turn', woken === false, `${QUIET_MS / 1000} s without a request to the model`);
  shown(row.agent, row.path, row.hears === 'deaf' ? 'no: it does not listen for it' : 'no: it rings, and no turn starts', []);
}

// What the hook at the start of a session tells the agent to start with, where there is one.
function toldSession(text) {
  return /surface_session \\*"([^"\\]+)/.exec(text)?.[1];
}

function isAsked({ model }, before, words) {
  return model.requests.slice(before).some(({ tools, text }) => tools.length > 0 && text.includes(words));
}

function shown(agent, path, woken, took) {
  table.push([agent, path, woken, took.map((each) => each.toFixed(0)).join(', ')]);
}

async function send({ home, model }, time) {
  const before = model.requests.length;
  const began = performance.now();
  const { signal_id } = await mesh(home, 'send', { to: 'mike', session: home.sessions[time], type: 'Question', body: 'Are you ready?' });
  const at = performance.now();
  return { id: signal_id, time, at, took: at - began, before };
}

// The model is asked with the bell in the question; then it reads, replies, and the books are right. Returns when it was asked.
async function heard(row, agent, sent) {
  const bell = BELLS[sent.time];
  const rung = ({ text }) => text.includes(bell);
  const request = await until('the model is asked with the bell in it', BELL_MS, () => agent.model.requests.find(rung));
  // Whatever an agent asks beside (a title, a summary), it asks without tools.
  const next = agent.model.requests.slice(sent.before).find(({ tools }) => tools.length > 0);
  const isNext = next === request || row.hears === 'asked';
  check(row, 'the model is asked, and shown the bell', isNext, `${(request.at - sent.at).toFixed(0)} ms after the send, which took ${sent.took.toFixed(0)} ms`);
  await until('it has replied', BELL_MS, () => replied(agent.model.requests, sent.time));
  const debt = await until('the obligation is closed', BOOKS_MS, async () => {
    const found = await owed(agent, sent);
    return found?.closed_at && found;
  });
  const books = `${debt.state}, ${debt.last_wake_path}: ${debt.last_wake_result}, ${debt.wake_ring_count} of ${debt.wake_attempt_count} rang`;
  const bells = (await mesh(agent.home, 'diagnostics', { agent: 'mike' })).recent_bells;
  const confirmed = bells.some(({ path, result }) => path === row.path && result === 'confirmed');
  // The last wake is the push, and the drain does not overwrite it. (R-30)
  const same = row.path === debt.last_wake_path && debt.last_wake_result === 'rang' && debt.heard_at && confirmed;
  check(row, 'read and replied to, the books say the same', same, books);
  return request.at;
}

// What the agent owes for this signal, as the one who asked sees it.
async function owed({ home }, { id, time }) {
  for (const state of ['done', 'heard', 'open']) {
    const { obligations } = await mesh(home, 'obligations', { agent: SENDERS[time], of: 'others', state });
    const found = obligations.find(({ signal_id }) => signal_id === id);
    if (found) return found;
  }
  return undefined;
}

// Prism has this way to the agent, and would ring there.
async function reaches({ home }, way) {
  const { paths } = await mesh(home, 'diagnostics', { agent: 'mike' });
  return paths.some(({ path, healthy }) => path === way && healthy);
}

async function mesh(home, verb, body) {
  const answer = await home.fetch(`/prism/mesh/${verb}`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal: AbortSignal.timeout(BOOKS_MS),
  });
  const result = await answer.json();
  if (!answer.ok) throw new Error(`${verb}: ${answer.status} ${JSON.stringify(result.error)}`);
  return result;
}
