#!/usr/bin/env node
// Every revision on the client's side on every kind of server. What run.sh says; one letter a step, see STEPS.
//   node matrix.mjs BASE_URL [--front REVISION]... [--back NAME]...
//   node matrix.mjs --direct URL --front REVISION
import { setTimeout as sleep } from 'node:timers/promises';
import { Modern, Sse, Streamable, must } from './fronts.mjs';

const FRONTS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const BACKS = { 'stdio-legacy': 'legacy', 'stdio-modern': 'modern', 'http-legacy': 'legacy', 'http-modern': 'modern', sse: 'legacy' };
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const WATCHED = 'test://watched-resource';

/// The longest that a step may take, and opening a client (the bridge may have to start a server for it).
const STEP_MS = 30_000;
/// How long something that must come may take, once what causes it has been answered.
const SOON_MS = 5_000;
/// How long a call takes at the most to get upstream.
const BEGUN_MS = 1_000;
/// How long we wait for what must not come.
const SILENCE_MS = 300;

const textOf = (r) => (r.answer.result?.content ?? []).map((c) => c.text ?? '').join('\n');
const short = (v) => JSON.stringify(v)?.slice(0, 160);
const unique = (() => { let n = 0; return (what) => `${what}-${process.pid}-${++n}`; })();
const named = (method) => (m) => m.method === method;
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

const good = (r, what) => {
  must(r.answer.result && !r.answer.result.isError, () => `${what}: HTTP ${r.status} ${short(r.answer)}`);
  return r;
};

const said = (what, work) => work.catch((e) => { throw new Error(`${what}: ${e.message}`); });

async function until(what, look, ms = SOON_MS) {
  for (const end = Date.now() + ms; ; await sleep(50)) {
    if (await look()) return;
    must(Date.now() < end, `${what} not seen in ${ms} ms`);
  }
}

// The tools that ask: those of one era do not work in the other.
const ELICITATION = { legacy: ['test_elicitation', { message: 'Who?' }], modern: ['test_input_required_result_elicitation', {}] };
const SAMPLING = { legacy: ['test_sampling', { prompt: 'yard' }], modern: ['test_input_required_result_sampling', {}] };

/// Calls a tool that asks once; the question and what the tool made of the answer.
async function asks(c, cell, tool, method) {
  const before = c.strays?.length ?? 0;
  const r = good(await c.call(...tool), tool[0]);
  const strays = c.strays?.slice(before) ?? [];
  must(!strays.length || !cell.bridged, () => `asked outside the call: ${short(strays)}`);
  const asked = [...r.asked, ...strays];
  must(asked.length === 1 && asked[0].method === method, () => `asked ${short(asked)}; ${textOf(r)}`);
  return { question: asked[0], text: textOf(r) };
}

/// Waits until upstream has seen the cancellation of its call of yard_echo with this payload.
const cancelled = (c, payload) => said('the next call after a cancelled one', until(`the cancellation of ${payload} upstream`, async () =>
  textOf(await c.call('yard_cancelled', { payload })) === '1'));

/// In 2026-07-28 a call is cancelled by closing it, also before anything of its answer has come. Nobody is asked whether it
/// has begun: a bridge may let the calls of one client take turns.
async function cancelsUnheard(c) {
  const payload = unique('unheard');
  const pending = c.pending('tools/call', { name: 'yard_echo', arguments: { payload, delay_ms: 20_000 } });
  await sleep(BEGUN_MS);
  pending.close();
  await cancelled(c, payload);
}

// Each step gets a client that is open, and cell = { back: legacy|modern, bridged }. Undefined is a pass.
const STEPS = {
  // checks 16 49 67 71
  async list(c) {
    const hinted = (what, result) => {
      const hints = Number.isInteger(result.ttlMs) && result.ttlMs >= 0 && ['public', 'private'].includes(result.cacheScope);
      must(c.era === 'legacy' || (result.resultType === 'complete' && hints), () => `${what} without hints: ${short(result)}`);
    };
    hinted('server/discover', c.hello);
    must(c.era === 'legacy' || c.hello._meta?.[SERVER_INFO]?.name, () => `server/discover without serverInfo: ${short(c.hello)}`);
    for (const [method, key, wanted] of [
      ['tools/list', 'tools', (t) => t.name === 'yard_echo'],
      ['prompts/list', 'prompts', (p) => p.name === 'test_simple_prompt'],
      ['resources/list', 'resources', (r) => r.uri === WATCHED],
      ['resources/templates/list', 'resourceTemplates', (t) => t.uriTemplate === 'test://template/{id}/data'],
    ]) {
      const all = [];
      for (let cursor, page = 0; page < 20; page++) {
        const { result } = good(await c.request(method, cursor === undefined ? {} : { cursor }), method).answer;
        all.push(...(result[key] ?? []));
        hinted(method, { ...result, [key]: undefined });
        if ((cursor = result.nextCursor) === undefined) break;
      }
      must(all.some(wanted), () => `${method} lists ${all.length}, but not what is there`);
    }
    const { result } = good(await c.request('resources/read', { uri: WATCHED }), 'resources/read').answer;
    hinted('resources/read', result);
    must(result.contents?.[0]?.text === 'Watched resource content', () => `resources/read: ${short(result)}`);
    const prompt = good(await c.request('prompts/get', { name: 'test_simple_prompt' }), 'prompts/get').answer.result;
    must(prompt.messages?.length === 1, () => `prompts/get: ${short(prompt)}`);
    const argument = { ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument: { name: 'arg1', value: 'par' } };
    const { completion } = good(await c.request('completion/complete', argument), 'completion/complete').answer.result;
    must(completion?.values?.includes('paris'), () => `completion/complete: ${short(completion)}`);
  },

  // checks 10 43 72 73
  async call(c, cell) {
    const payload = 'a "quoted"\n\u2028 \u00e9 \u{1f980} payload';
    for (const id of [undefined, 0, unique('call')]) {
      const r = good(await c.call('yard_echo', { payload }, { id }), 'yard_echo');
      must(textOf(r) === payload, () => `echo: ${short(textOf(r))}`);
    }
    const two = await Promise.all(['left', 'right'].map((p) => c.call('yard_echo', { payload: p, delay_ms: 100 })));
    must(same(two.map(textOf), ['left', 'right']), () => `two at once: ${short(two.map(textOf))}`);
    if (!cell.bridged) return; // the fixture itself reads ids as JavaScript numbers, and has no batches
    const big = '9007199254740993';
    const params = { name: 'yard_echo', arguments: { payload: 'big' } };
    const body = c.body ? c.body('tools/call', params, big) : `{"jsonrpc":"2.0","id":${big},"method":"tools/call","params":${JSON.stringify(params)}}`;
    const r = await c.request('tools/call', params, { id: Number(big), body });
    must(new RegExp(`"id"\\s*:\\s*${big}\\b`).test(r.raw), () => `id ${big} came back in ${r.raw.slice(0, 160)}`);
    if (c.revision !== '2025-03-26') return;
    const { answers } = await c.batch([
      { jsonrpc: '2.0', id: 'b1', method: 'tools/call', params: { name: 'yard_echo', arguments: { payload: 'one' } } },
      { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
      { jsonrpc: '2.0', id: 'b2', method: 'ping' },
    ]);
    must(same(answers.map((a) => a.id).sort(), ['b1', 'b2']), () => `a batch of two got ${short(answers)}`);
  },

  // checks 75
  async progress(c) {
    const args = { payload: 'p', steps: 3, delay_ms: 120 };
    for (const progressToken of [unique('token'), 77, String(77)]) {
      const r = good(await c.call('yard_echo', args, { meta: { progressToken } }), 'yard_echo');
      const notes = r.notes.filter(named('notifications/progress')).map((m) => m.params);
      must(notes.length === 3, () => `${notes.length} of 3 notes before the answer`);
      must(notes.every((n) => n.progressToken === progressToken), () => `token ${short(progressToken)} became ${short(notes[0].progressToken)}`);
      must(same(notes.map((n) => n.progress), [1, 2, 3]), () => `progress ${short(notes.map((n) => n.progress))}`);
    }
    const heard = c.outside.all.filter((e) => e.message.method === 'notifications/progress').length;
    const r = good(await c.call('yard_echo', args), 'yard_echo');
    must(!r.notes.some(named('notifications/progress')), 'progress without a token');
    const now = c.outside.all.filter((e) => e.message.method === 'notifications/progress').length;
    must(now === heard, 'progress without a token');
  },

  // checks 74
  async log(c, cell) {
    const isLog = named('notifications/message');
    // On the call's own stream, or (legacy) on the one outside; the first has ended with the answer.
    const logged = async (meta) => {
      const from = c.outside.all.length;
      const r = good(await c.call('test_tool_with_logging', {}, { meta }), 'test_tool_with_logging');
      const all = () => [...new Set([...r.notes, ...c.outside.all.slice(from).map((e) => e.message)])].filter(isLog);
      if (all().length < 3) await sleep(SILENCE_MS);
      return all();
    };
    if (c.era === 'modern') {
      const heard = await logged({ [LOG_LEVEL]: 'debug' });
      must(heard.length === 3 && heard.every((m) => m.params.level === 'info'), () => `at debug: ${short(heard)}`);
      must((await logged({ [LOG_LEVEL]: 'error' })).length === 0, 'notes below the level');
      must((await logged()).length === 0, 'notes without a level');
      const wrong = await c.call('test_tool_with_logging', {}, { meta: { [LOG_LEVEL]: 'loud' } });
      must(wrong.answer.error?.code === -32602, () => `level "loud": HTTP ${wrong.status} ${short(wrong.answer)}`);
      return;
    }
    const level = async (l) => {
      const { answer } = await c.request('logging/setLevel', { level: l });
      must(same(answer.result, {}), () => `logging/setLevel ${l}: ${short(answer)}`);
    };
    await level('debug');
    const heard = await logged();
    must(heard.length === 3 && heard.every((m) => m.params.level === 'info'), () => `at debug: ${short(heard)}`);
    await level('error');
    must((await logged()).length === 0, 'notes below the level');
    await level('debug');
    if (!cell.bridged) return; // the SDK says -32603
    const wrong = await c.request('logging/setLevel', { level: 'loud' });
    must(wrong.answer.error?.code === -32602, () => `level "loud": ${short(wrong.answer)}`);
  },

  // checks 34 81 82
  async subscribe(c) {
    const updated = (m) => m.method === 'notifications/resources/updated' && m.params.uri === WATCHED;
    const changed = named('notifications/tools/list_changed');
    const touch = async (uri) => {
      const r = good(await c.call('yard_touch', { uri }), 'yard_touch');
      return c instanceof Streamable && r.notes.filter((m) => m.method?.startsWith('notifications/resources'));
    };
    const later = async () => good(await c.call('yard_notify_later', { after_ms: 50 }), 'yard_notify_later');
    const hears = async (inbox, what, wanted, cause) => {
      const from = inbox.all.length;
      const misplaced = await cause();
      must(!misplaced?.length, () => `${what} on the stream of a call`);
      must(await inbox.find(what, wanted, SOON_MS, from), `the stream ended before ${what}`);
      await sleep(SILENCE_MS);
      const times = inbox.all.slice(from).filter((e) => wanted(e.message)).length;
      must(times === 1, `${what} came ${times} times`);
    };
    if (c.era === 'legacy') {
      const ask = async (method) => {
        const { answer } = await c.request(method, { uri: WATCHED });
        must(same(answer.result, {}), () => `${method}: ${short(answer)}`);
      };
      await ask('resources/subscribe');
      await hears(c.outside, 'resources/updated', updated, () => touch(WATCHED));
      await hears(c.outside, 'tools/list_changed', changed, () => later().then(() => undefined));
      await ask('resources/unsubscribe');
      const from = c.outside.all.length;
      await touch(WATCHED);
      await sleep(SILENCE_MS);
      must(!c.outside.all.slice(from).some((e) => updated(e.message)), 'resources/updated after resources/unsubscribe');
      return;
    }
    const id = unique('listen');
    const one = await c.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] }, id);
    must(one.honoured.toolsListChanged === true && same(one.honoured.resourceSubscriptions, [WATCHED]), () => `honoured ${short(one.honoured)}`);
    const other = await c.listen({ toolsListChanged: true }, 0);
    try {
      await hears(one.inbox, 'resources/updated', updated, () => touch(WATCHED));
      await hears(other.inbox, 'tools/list_changed', changed, () => later().then(() => undefined));
      const times = one.inbox.all.filter((e) => changed(e.message)).length;
      must(times === 1, `tools/list_changed came ${times} times on the first of two listens, and once on the second`);
      await touch('test://static-text');
      await sleep(SILENCE_MS);
      for (const [listen, tag, most] of [[one, id, 3], [other, 0, 2]]) {
        const wrong = listen.inbox.all.find((e) => e.message.params?._meta?.[SUBSCRIPTION] !== tag);
        must(!wrong, () => `not tagged ${tag}: ${short(wrong.message)}`);
        must(listen.inbox.all.length === most, () => `${short(listen.inbox.all.map((e) => e.message.method))} on listen ${tag}`);
      }
    } finally {
      one.close();
      other.close();
    }
  },

  // checks 32 33
  async elicitation(c, cell) {
    if (!c.elicits) return 'n/a';
    const { question, text } = await asks(c, cell, ELICITATION[cell.back], 'elicitation/create');
    must(question.params.requestedSchema?.properties, () => `asked without a schema: ${short(question)}`);
    must(text.includes('yard-elicit'), () => `answer: ${text}`);
  },

  // checks 32 33 56
  async sampling(c, cell) {
    const { question, text } = await asks(c, cell, SAMPLING[cell.back], 'sampling/createMessage');
    must(question.params.messages?.length === 1, () => `asked without a message: ${short(question)}`);
    must(text.includes('yard-sample'), () => `answer: ${text}`);
  },

  // checks 39 40 76
  async cancel(c, cell) {
    const payload = unique('cancel');
    const params = { name: 'yard_echo', arguments: { payload, delay_ms: 20_000, steps: 200 }, _meta: { progressToken: payload } };
    const sent = await c.start('tools/call', params);
    try {
      const begun = await sent.inbox.find('first progress', (m) => m.params?.progressToken === payload, SOON_MS, sent.from ?? 0);
      must(begun, 'the stream ended before the call had begun');
      if (c.era === 'modern') sent.close();
      else await c.notify('notifications/cancelled', { requestId: sent.requestId, reason: 'no longer needed' });
      await cancelled(c, payload);
      if (c instanceof Streamable && cell.bridged) await sent.inbox.whenEnded('end of a cancelled stream', SOON_MS);
      else await sleep(SILENCE_MS);
      const answer = sent.inbox.all.find((e) => e.message.id === sent.requestId && !e.message.method);
      must(!answer, () => `a cancelled call was answered: ${short(answer.message)}`);
    } finally {
      sent.close();
    }
    if (c.era === 'legacy') await c.notify('notifications/cancelled', { requestId: 'never-heard-of' });
    else await cancelsUnheard(c);
    // A cancelled call is never answered upstream; the next question is this client's all the same, on whichever stream.
    await said('a question after a cancelled call', asks(c, { ...cell, bridged: false }, SAMPLING[cell.back], 'sampling/createMessage'));
  },

  // checks 48 50 54 55 69
  async errors(c, cell) {
    const modern = c.era === 'modern';
    const usual = c instanceof Sse ? 202 : 200;
    const fails = async (what, request, code, status = usual) => {
      const r = await request;
      must(r.answer.error?.code === code, () => `${what}: ${short(r.answer)} instead of ${code}`);
      must(r.status === status, () => `${what}: HTTP ${r.status} instead of ${status}`);
    };
    await fails('a missing resource', c.request('resources/read', { uri: 'test://no-such-thing' }), modern ? -32602 : -32002);
    await fails('an unknown method', c.request('yard/unknown', {}), -32601, modern ? 404 : usual);
    await fails('an unknown tool', c.call('yard_no_such_tool'), -32602);
    await fails('an unknown prompt', c.request('prompts/get', { name: 'yard_no_such_prompt' }), -32602);
    await fails('code 1234', c.call('yard_fail', { code: 1234 }), 1234);
    if (modern) {
      for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe']) {
        await fails(method, c.request(method, {}), -32601, 404);
      }
      if (cell.bridged) await fails('a reserved code', c.call('yard_fail', { code: -32077 }), -32603);
    } else {
      const { answer } = await c.request('ping', {});
      must(same(answer.result, {}), () => `ping: ${short(answer)}`);
      await fails('server/discover', c.request('server/discover', {}), -32601);
      if (c instanceof Sse) must((await c.knock()) === 404, 'a message for an unknown session was not HTTP 404');
    }
    good(await c.call('test_simple_text'), 'a call after errors');
    const r = await c.call('test_error_handling');
    must(r.answer.result?.isError === true, () => `a tool that fails: ${short(r.answer)}`);
  },
};
const LETTERS = { list: 'l', call: 'c', progress: 'p', log: 'g', subscribe: 's', elicitation: 'e', sampling: 'a', cancel: 'x', errors: 'r' };

function front(revision, base, direct) {
  if (revision === '2024-11-05') return new Sse(direct ? base : `${base}/sse`, revision);
  return new (revision >= '2026' ? Modern : Streamable)(direct ? base : `${base}/mcp`, revision);
}

const limited = (what, work, ms = STEP_MS) => {
  let timer;
  const late = new Promise((_, fail) => { timer = setTimeout(() => fail(new Error(`${what}: not done in ${ms} ms`)), ms); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};
const reason = (e) => [e?.message, e?.code].filter(Boolean).join(' ').split('\n')[0].slice(0, 240) || String(e);

async function run(client, cell) {
  const out = { ok: 0, of: 0, failed: '', why: [] };
  try {
    await limited('opening', client.open());
  } catch (e) {
    client.end();
    return { ...out, of: Object.keys(STEPS).length, failed: 'closed', why: [`opening: ${reason(e)}`], refused: e?.code === 'ECONNREFUSED' };
  }
  for (const [name, step] of Object.entries(STEPS)) {
    try {
      if ((await limited(name, step(client, cell))) === 'n/a') continue;
      out.ok++;
    } catch (e) {
      out.failed += LETTERS[name];
      out.why.push(`${name}: ${reason(e)}`);
    }
    out.of++;
  }
  await limited('closing', client.close(), SOON_MS).catch(() => client.end());
  return out;
}

const stop = (why) => { console.error(`matrix: ${why}`); process.exit(2); };
const options = { front: [], back: [], direct: [], base: [] };
for (const args = process.argv.slice(2); args.length; ) {
  const word = args.shift();
  const key = { '--front': 'front', '--back': 'back', '--direct': 'direct' }[word] ?? (word.startsWith('--') ? stop(`unknown option ${word}`) : 'base');
  options[key].push(key === 'base' ? word : args.shift() ?? stop(`${word} wants a value`));
}
const [base] = options.direct.length ? options.direct : options.base;
if (!base) stop('usage: matrix.mjs BASE_URL [--front REVISION]... [--back NAME]... | --direct URL --front REVISION');
for (const f of options.front) if (!FRONTS.includes(f)) stop(`unknown revision ${f}; there are ${FRONTS.join(', ')}`);
for (const b of options.back) if (!BACKS[b]) stop(`unknown back ${b}; there are ${Object.keys(BACKS).join(', ')}`);
const chosen = (all, some) => all.filter((x) => !some.length || some.includes(x));
const direct = options.direct.length > 0;
const fronts = chosen(FRONTS, options.front);
const backs = direct ? ['direct'] : chosen(Object.keys(BACKS), options.back);

// Backs side by side; on one back the fronts take turns, since a log note of two calls at once is nobody's.
const results = new Map();
const begun = Date.now();
await Promise.all(backs.map(async (back) => {
  for (const revision of fronts) {
    const era = revision >= '2026' ? 'modern' : 'legacy';
    const cell = direct ? { back: era, bridged: false } : { back: BACKS[back], bridged: true };
    const url = direct ? base : `${base.replace(/\/$/, '')}/${back}`;
    const result = await run(front(revision, url, direct), cell);
    results.set(`${revision} ${back}`, result);
    console.error(`... ${revision} on ${back}: ${result.failed || 'ok'} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
  }
}));
const at = (revision, back) => results.get(`${revision} ${back}`);
const show = (r) => (r.failed ? `${r.failed} ${r.ok}/${r.of}` : `ok ${r.ok}/${r.of}`);
const width = Math.max(14, ...[...results.values()].map((r) => show(r).length));
const row = (cells) => `| ${cells[0].padEnd(16)} | ${cells.slice(1).map((c) => c.padEnd(width)).join(' | ')} |`;
const label = (revision) => `${revision}${revision === '2024-11-05' ? ' SSE' : ''}`;
console.log(row(['front \\ back', ...backs]));
console.log(`|${'-'.repeat(18)}|${`${'-'.repeat(width + 2)}|`.repeat(backs.length)}`);
for (const revision of fronts) console.log(row([label(revision), ...backs.map((back) => show(at(revision, back)))]));
console.log(Object.entries(LETTERS).map(([name, letter]) => `${letter} ${name}`).join(', '));
for (const revision of fronts) for (const back of backs) for (const why of at(revision, back).why) console.log(`${revision} on ${back}: ${why}`);
const all = [...results.values()];
const whole = all.filter((r) => !r.failed).length;
if (all.every((r) => r.refused)) stop(`nobody listens at ${base}`);
console.log(`matrix: ${whole}/${all.length} cells whole`);
process.exit(whole === all.length ? 0 : 1);
