// What the model on loopback says. A script knows nothing but what it is asked with, as a model does: the id of a call tells
// what its result is of, so one script may serve an agent's whole session and what the agent asks beside it.

// Claude Code names the tools of MCP servers in a message, and describes them to whoever searches.
const SEARCH = 'ToolSearch';
const FIND = 'toolu_find';
const ECHO = 'toolu_echo';

// Of one that wants a tool to say `phrase`: asked with the tool on offer it calls it (an agent that only names its tools is
// asked for it first, as a real model would); asked with the tool's answer it quotes the answer; asked anything else it
// says "ok".
export const quotes = (phrase) => ({ tools, results }) => {
  const tool = tools.find((name) => name.endsWith('demo__echo'));
  const result = results.find(({ id }) => id === ECHO);
  if (result) return { text: `The tool said: ${result.text}` };
  if (!tool) return { text: 'ok' };
  return found([tool], tools, results) ?? { id: ECHO, tool, input: JSON.stringify({ text: phrase }) };
};

// The search that has to come before a call of these tools, where there is one.
function found(wanted, tools, results) {
  if (!tools.includes(SEARCH) || results.some(({ id }) => id === FIND)) return undefined;
  return { id: FIND, tool: SEARCH, input: JSON.stringify({ query: `select:${wanted.join(',')}`, max_results: wanted.length + 4 }) };
}

const START = 'toolu_start';
const [WAIT, DRAIN, REPLY] = ['toolu_wait', 'toolu_drain', 'toolu_reply'].map((name) => (time) => `${name}_${time}`);
const STEPS = ['prism_start', 'prism_signals_wait', 'prism_signals_pending', 'prism_signal_reply', 'demo__echo'];

// Of a member of the mesh. It starts as what `start` says, waits in a tool call where it `waits`, and has nothing more to do.
// Where it reads the next of `bells` it reads its signals, replies to the first, and waits again; asked what `wish` says it
// lets the echo tool speak, and it `thinks` about what it is told to until it is let go on. Where it `claims` its session it
// says with each call which one prism_start gave it.
export const member = ({ start, claims, waits, bells, wish, thinks }) => async ({ tools, results, text }) => {
  const names = Object.fromEntries(STEPS.map((step) => [step, tools.find((name) => name.endsWith(step))]));
  if (STEPS.some((step) => !names[step])) return { text: 'ok' };
  const result = (id) => results.find((one) => one.id === id)?.text;
  const call = (id, step, input) => ({ id, tool: names[step], input: JSON.stringify(input) });
  const search = found(Object.values(names), tools, results);
  if (search) return search;
  if (result(START) === undefined) return call(START, 'prism_start', await start(text));
  const session = claims ? /"session":\s*"([^"]+)"/.exec(result(START))?.[1] : undefined;
  for (const [time, bell] of bells.entries()) {
    if (waits && result(WAIT(time)) === undefined) return call(WAIT(time), 'prism_signals_wait', { session, ...waits });
    if (!text.includes(bell)) break;
    const drained = result(DRAIN(time));
    if (drained === undefined) return call(DRAIN(time), 'prism_signals_pending', { session });
    const to_signal = /"signal_id":\s*"([^"]+)"/.exec(drained)?.[1] ?? 'none';
    if (result(REPLY(time)) === undefined) return call(REPLY(time), 'prism_signal_reply', { session, to_signal, body: 'Yes.' });
  }
  if (text.includes(wish) && result(ECHO) === undefined) return call(ECHO, 'demo__echo', { text: 'hello' });
  if (text.includes(thinks.about)) await thinks.until;
  return { text: 'ok' };
};

// How far a member has come: the results that it has been given.
export const started = (requests) => answered(requests, START);
export const waiting = (requests, time) => answered(requests, WAIT(time));
export const replied = (requests, time) => answered(requests, REPLY(time));

function answered(requests, id) {
  return requests.some(({ results, said }) => said && results.some((result) => result.id === id));
}
