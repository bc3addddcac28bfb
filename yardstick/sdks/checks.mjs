// What every JavaScript client does in every cell: the same as checks.py, which says how it is told its cells and what it tells.
// `connected(target, seen)` opens a session: { can, protocol, tools(), call(name, arguments, notes), cancelled(name, arguments, when), close() }.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const UNICODE = 'Zażółć gęślą jaźń 🦀 \u2028 漢字 👨\u200d👩\u200d👧 ñ';
const CALLS = ['list', 'call', 'unicode', '900kB', 'progress', 'log', 'elicitation', 'sampling', 'list_changed', 'cancel', 'fail'];
const TOOLS = ['echo', 'big', 'steps', 'say', 'ask', 'sample', 'grow', 'wait', 'fail'];
const AT_ONCE = Number(process.env.YARD_CELLS ?? 6);
const [CHECK_MS, OPEN_MS, CLOSE_MS] = [30_000, 60_000, 5_000];

class Need extends Error {}
const must = (ok, why) => { if (!ok) throw new Need(why); };
const why = (error) => `${error instanceof Need ? '' : `${error?.name}: `}${error?.message ?? error}`.replace(/\s+/g, ' ').slice(0, 240);
const within = (promise, ms, late) => {
  const timer = new AbortController();
  const end = sleep(ms, undefined, { signal: timer.signal, ref: false }).then(() => { throw new Error(late); });
  return Promise.race([promise, end]).finally(() => { end.catch(() => {}); timer.abort(); });
};
async function until(ok, ms = 4000) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) if (ok()) return true;
  return ok();
}

// Each method but the first few is a check of one session; it throws what is wrong, or returns "n/a".
class Checks {
  constructor(cell, session, seen) { Object.assign(this, { cell, session, seen, prefix: '' }); }

  async names() {
    const names = await this.session.tools();
    const own = names.find((name) => name === 'echo' || name.endsWith('__echo'));
    must(own, `no echo among ${names.length} tools: ${names.slice(0, 3)}`);
    this.prefix = own.slice(0, -'echo'.length);
    return names;
  }

  async use(name, args, notes) {
    const { text, isError } = await this.session.call(this.prefix + name, args, notes);
    must(!isError, `${name}: ${text.slice(0, 160)}`);
    return text;
  }

  async echoes(text) {
    const got = await this.use('echo', { text });
    must(got === text, `echo answered ${got.slice(0, 80)}`);
  }

  async list() {
    const names = await this.names();
    const missing = TOOLS.filter((name) => !names.includes(this.prefix + name));
    must(!missing.length, `missing: ${missing}`);
  }

  call() { return this.echoes('hello'); }

  unicode() { return this.echoes(UNICODE); }

  async '900kB'() {
    const got = await this.use('big', { length: 900_000 });
    must(got === '0123456789'.repeat(90_000), `${got.length} characters of 900000`);
  }

  async progress() {
    if (!this.session.can.includes('progress')) return 'n/a';
    let notes;
    for (let i = 0; i < 3; i += 1) { // an SDK may drop the notes that it reads together with the answer
      notes = [];
      await this.use('steps', { count: 5 }, (note) => notes.push(note));
      if (await until(() => notes.length >= 5, 500)) break;
    }
    must(String(notes) === '1,2,3,4,5', `notes ${notes} of 1 to 5`);
  }

  async log(text = 'a log note') {
    if (!this.session.can.includes('log')) return 'n/a';
    await this.use('say', { text });
    must(await until(() => this.seen.logged.some((note) => note.includes(text))), `no log note (${text})`);
    this.cell.logs = true;
  }

  async elicitation() {
    if (!this.session.can.includes('elicitation')) return 'n/a';
    const got = await this.use('ask', {});
    must(this.seen.asked && got === 'accept: blue', `asked ${this.seen.asked} times, answer ${got}`);
  }

  async sampling() {
    if (!this.session.can.includes('sampling')) return 'n/a';
    const got = await this.use('sample', {});
    must(this.seen.sampled && got === 'sampled', `asked ${this.seen.sampled} times, answer ${got}`);
  }

  async list_changed() {
    if (!this.session.can.includes('list_changed')) return 'n/a';
    const [before, name] = [this.seen.changed, `t${this.cell.key}`];
    await this.use('grow', { name });
    const isTold = await until(() => this.seen.changed > before);
    must((await this.names()).includes(this.prefix + name), `told: ${isTold}; the new tool is not in the list that was asked for then`);
    must(isTold, 'no tools/list_changed');
  }

  async cancel() {
    const key = `c${this.cell.key}`;
    const word = join(this.cell.folder, key);
    const said = () => (existsSync(word) ? readFileSync(word, 'utf8') : 'not begun');
    const begun = async () => must(await until(() => said() === 'waiting', 15_000), `the call to be cancelled is ${said()}`);
    await this.session.cancelled(`${this.prefix}wait`, { key, seconds: 15 }, begun);
    must(await until(() => said() === 'cancelled'), `the server was not told: ${said()}`);
    await this.echoes('after the cancel');
    if (this.cell.logs) await this.log('after the cancel');
  }

  async fail() {
    const { text, isError } = await this.session.call(`${this.prefix}fail`, {});
    must(isError && text.includes('the disk is full'), `is an error: ${isError}, answer ${text.slice(0, 80)}`);
    await this.echoes('after the error');
  }

  async lost() {
    const { tool } = this.cell.lost;
    const call = this.session.call(this.prefix + tool, tool === 'wait' ? { key: `l${this.cell.key}`, seconds: 60 } : {});
    const { text, isError } = await within(call.catch((error) => ({ text: why(error), isError: true })), 12_000, 'the lost call is never answered');
    must(isError, `the lost call is answered with ${text.slice(0, 80)}`);
    this.cell.said = text;
    await this.echoes('after the lost call');
  }

  restart() { return this.echoes('after the restart'); }
}

// Lets some cells work at a time, and holds those that have come to the restart.
class Gate {
  constructor(cells) {
    this.free = AT_ONCE;
    this.queue = [];
    this.missing = cells.filter((cell) => !cell.direct).length;
    this.opened = new Promise((open) => { this.open = open; });
  }

  async take() {
    if (this.free > 0) this.free -= 1;
    else await new Promise((turn) => this.queue.push(turn));
  }

  give() {
    const next = this.queue.shift();
    if (next) next();
    else this.free += 1;
  }

  arrive() {
    this.missing -= 1;
    if (this.missing === 0) console.log(JSON.stringify({ ready: true }));
  }
}

async function play(cell, connected, gate) {
  const { server, way, direct } = cell;
  const out = { server, way, direct, protocol: null, checks: {}, errors: {} };
  const todo = CALLS.map((name) => [cell.target, name]);
  if (!direct) todo.push([cell.lost.target, 'lost'], [cell.target, 'restart']);
  const work = { holds: true, arrived: direct };
  work.waitForTheRestart = async () => {
    if (work.holds) gate.give();
    work.holds = false;
    if (!work.arrived) gate.arrive();
    work.arrived = true;
    await gate.opened;
    await gate.take();
    work.holds = true;
  };
  await gate.take();
  while (todo.length) await oneSession(out, cell, todo, connected, work);
  if (work.holds) gate.give();
  if (!work.arrived) gate.arrive();
  return { ...out, said: cell.said, again: cell.again };
}

// Opens a session and plays what is at the head of `todo`, which it takes off, until the session is in doubt or its server changes.
async function oneSession(out, cell, todo, connected, work) {
  const target = todo[0][0];
  const seen = { logged: [], changed: 0, asked: 0, sampled: 0 };
  const fault = (said) => {
    const [, name] = todo.shift();
    out.checks[name] = false;
    out.errors[name] = said;
  };
  let session;
  try {
    session = await within(connected(target, seen), OPEN_MS, `not open in ${OPEN_MS} ms`);
    out.protocol ??= session.protocol;
    const checks = new Checks(cell, session, seen);
    if (todo[0][1] !== 'list') await within(checks.names(), CHECK_MS, 'no list of tools');
    while (todo.length && todo[0][0] === target) {
      const [, name] = todo[0];
      if (name === 'restart') await work.waitForTheRestart();
      try {
        const said = await within(checks[name](), CHECK_MS, `not done in ${CHECK_MS} ms`);
        out.checks[name] = said ?? (name === 'restart' && cell.again ? 'again' : true);
        todo.shift();
      } catch (error) {
        if (name === 'restart' && !cell.again) {
          cell.again = why(error);
          break;
        }
        fault(why(error));
        if (!(error instanceof Need)) break;
      }
    }
  } catch (error) {
    fault(`${session ? 'the session is gone' : 'cannot open a session'}: ${why(error)}`);
    while (!session && todo.length && todo[0][0] === target) fault('cannot open a session'); // the rest would only wait as long
  }
  if (session) await within(session.close(), CLOSE_MS, 'it does not close').catch((error) => { out.errors.close ??= why(error); });
}

export async function main(client, version, connected) {
  process.on('unhandledRejection', () => {}); // an SDK that loses its connection may say so to nobody
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const cells = JSON.parse((await lines.next()).value);
  const gate = new Gate(cells);
  lines.next().then(() => gate.open());
  await Promise.all(cells.map(async (cell) => {
    const out = await play(cell, connected, gate);
    console.log(JSON.stringify({ client, version, ...out }));
  }));
  process.exit(0);
}

export const said = (result) => ({ text: (result.content ?? []).map((part) => part.text ?? '').join('\n'), isError: Boolean(result.isError) });
export const SAMPLED = { model: 'yard', role: 'assistant', content: { type: 'text', text: 'sampled' }, stopReason: 'endTurn' };
export const ANSWERED = { action: 'accept', content: { colour: 'blue' } };

// Calls, and cancels with an AbortSignal once `when()` returns.
export async function aborted(call, when) {
  const abort = new AbortController();
  const ended = call(abort.signal).catch(() => {});
  try {
    await when();
  } finally {
    abort.abort('the user');
    await Promise.race([ended, sleep(3000)]);
  }
}
