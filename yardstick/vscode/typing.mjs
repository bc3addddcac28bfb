// A person and an agent at work in one text at the same time, and how soon the agent hears of what the person does.
import { until } from './lib/wait.mjs';

// The person types `letters` at the end of line `theirs`, a letter every `delay` ms; the agent puts `marks` marks before line `its`
// in the same time. Lines are counted from 0. Returns how long the events took, in ms, and how often the agent had to look again.
export async function together(window, agent, { path, theirs, its, letters, delay, marks }) {
  const opened = await agent.act('open_file', { path });
  const before = opened.data.content.split('\n')[theirs].length;
  const from = agent.events.length;
  let version = opened.data.version;
  let isTyping = true;
  let [made, again] = [0, 0];
  const begun = performance.now();
  const due = (at) => new Promise((done) => { setTimeout(done, Math.max(0, begun + at - performance.now())); });
  const edits = (async () => {
    while (made < marks) {
      await due(made * letters.length * delay / marks);
      const place = { line: its, character: 0 };
      const done = await agent.act('edit_buffer', { path, version, edits: [{ range: { start: place, end: place }, new_text: '+' }] });
      if (done.status === 'ok') {
        made += 1;
        version = done.data.version;
      } else if (done.data.code === 'changed') {
        again += 1;
        version = (await agent.act('open_file', { path })).data.version;
      } else throw new Error(JSON.stringify(done));
      if (!isTyping && again > 10 * marks) throw new Error('the agent never gets to edit');
    }
  })();
  const [pressed, handled] = [[], []];
  for (const [i, letter] of [...letters].entries()) {
    await due(i * delay);
    pressed.push(performance.now());
    await window.page.keyboard.down(letter);
    handled.push(performance.now());
    await window.page.keyboard.up(letter);
  }
  isTyping = false;
  await edits;
  // Each event answers for all letters that it is the first to tell of.
  const told = { buffer: [], cursor: [] };
  const heard = () => {
    told.buffer.length = 0;
    told.cursor.length = 0;
    for (const event of agent.events.slice(from)) {
      if (!event.path?.endsWith(path) || event.by) continue;
      const theirOwn = (event.edits ?? []).filter(({ range }) => range.start.line === theirs);
      const upTo = event.event === 'buffer_changed' ? told.buffer.length + theirOwn.reduce((sum, edit) => sum + edit.new_text.length, 0)
        : event.event === 'cursor_moved' && event.position?.line === theirs ? event.position.character - before : 0;
      const list = event.event === 'buffer_changed' ? told.buffer : told.cursor;
      while (list.length < Math.min(upTo, pressed.length)) list.push(event.at);
    }
    return told.buffer.length === pressed.length && told.cursor.length === pressed.length;
  };
  await until('every letter was told to the agent', heard, 5000).catch((error) => {
    throw new Error(`${error.message}: ${told.buffer.length} and ${told.cursor.length} of ${pressed.length}`);
  });
  // From the key; and from when the window was done with it, which is when Prism can know of it at the earliest.
  const since = (list, from) => spread(list.map((at, i) => Math.max(0, at - from[i])));
  const both = (list) => ({ key: since(list, pressed), window: since(list, handled) });
  const foreign = agent.events.slice(from).filter((event) => event.event === 'buffer_changed' && !event.by
    && (event.edits ?? []).some(({ range }) => range.start.line === its)).length;
  return { foreign, buffer: both(told.buffer), cursor: both(told.cursor), again, made };
}

function spread(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] * 10) / 10;
  return { p50: at(0.5), p95: at(0.95), max: at(1) };
}
