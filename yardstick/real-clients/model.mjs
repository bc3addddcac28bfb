// A model on loopback, for agents that are tested without an account. What it says is a script's (`scripts.mjs`); here is
// how it is asked and how it answers: as Claude Code (Anthropic's messages), Codex (OpenAI's responses) and OpenCode
// (OpenAI's chat completions) want it.
import { createServer } from 'node:http';

// Starts it. `script` is asked for each answer: `{text}`, or `{id, tool, input}` for a call, or a promise of one of them.
// `requests` is what the model was asked, each with the time `at` which it came and what was `said`.
export async function startModel(script) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const path = new URL(request.url, 'http://model').pathname;
    const dialect = DIALECTS.find((one) => path.endsWith(one.path));
    let body;
    try { body = JSON.parse(text); } catch { body = undefined; }
    if (!dialect || !body) {
      requests.push({ path, at: performance.now(), tools: [], results: [], text: '' });
      response.writeHead(path.endsWith('/models') ? 200 : 404, { 'content-type': 'application/json' });
      return response.end('{"data":[],"models":[]}');
    }
    const asked = { path, at: performance.now(), tools: dialect.tools(body), results: dialect.results(body), text };
    requests.push(asked);
    const say = await Promise.resolve(asked).then(script).catch((error) => ({ text: `the script failed: ${error.message}` }));
    asked.said = say;
    if (dialect.streams(body)) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const [event, data] of dialect.events(say, body)) {
        response.write(`${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
      }
      return response.end();
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(dialect.whole(say, body)));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}

const flat = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join(''));

const ANTHROPIC = {
  path: '/v1/messages',
  tools: (body) => [
    ...(body.tools ?? []).map((tool) => tool.name),
    ...body.messages.flatMap((message) => flat(message.content).match(/^mcp__prism__\w+$/gm) ?? []),
  ],
  results: (body) => body.messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []))
    .filter((part) => part.type === 'tool_result').map((part) => ({ id: part.tool_use_id, text: flat(part.content) })),
  streams: (body) => body.stream === true,
  message: (body, content, stop_reason) => ({
    id: 'msg_yard', type: 'message', role: 'assistant', model: body.model, content, stop_reason, stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }),
  block: (say) => (say.tool
    ? { type: 'tool_use', id: say.id, name: say.tool, input: JSON.parse(say.input) }
    : { type: 'text', text: say.text }),
  whole(say, body) {
    return this.message(body, [this.block(say)], say.tool ? 'tool_use' : 'end_turn');
  },
  events(say, body) {
    const delta = say.tool ? { type: 'input_json_delta', partial_json: say.input } : { type: 'text_delta', text: say.text };
    const start = say.tool ? { ...this.block(say), input: {} } : { type: 'text', text: '' };
    return [
      { type: 'message_start', message: this.message(body, [], null) },
      { type: 'content_block_start', index: 0, content_block: start },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: say.tool ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ].map((data) => [data.type, data]);
  },
};

const RESPONSES = {
  path: '/responses',
  tools: (body) => (body.tools ?? []).flatMap((tool) => (tool.tools ? tool.tools.map((one) => `${tool.name}${one.name}`) : [tool.name ?? tool.type])),
  results: (body) => (Array.isArray(body.input) ? body.input : [])
    .filter((item) => item.type === 'function_call_output').map((item) => ({ id: item.call_id, text: flat(item.output) })),
  streams: () => true,
  events(say, body) {
    const item = say.tool
      ? { type: 'function_call', id: 'fc_yard', call_id: say.id, ...called(say.tool, body), arguments: say.input, status: 'completed' }
      : { type: 'message', id: 'msg_yard', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: say.text, annotations: [] }] };
    const response = { id: 'resp_yard', object: 'response', status: 'completed', model: body.model, output: [item] };
    return [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...response, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } } },
    ].map((data) => [data.type, data]);
  },
};

// Codex may offer tools by namespaces, and then wants both names back.
function called(tool, body) {
  const space = (body.tools ?? []).find((one) => one.tools?.some((inner) => `${one.name}${inner.name}` === tool));
  return space ? { namespace: space.name, name: tool.slice(space.name.length) } : { name: tool };
}

const CHAT = {
  path: '/chat/completions',
  tools: (body) => (body.tools ?? []).map((tool) => tool.function.name),
  results: (body) => body.messages.filter((message) => message.role === 'tool').map((message) => ({ id: message.tool_call_id, text: flat(message.content) })),
  streams: (body) => body.stream === true,
  whole(say, body) {
    const message = say.tool
      ? { role: 'assistant', content: null, tool_calls: [{ id: say.id, type: 'function', function: { name: say.tool, arguments: say.input } }] }
      : { role: 'assistant', content: say.text };
    return { id: 'chat_yard', object: 'chat.completion', model: body.model, choices: [{ index: 0, message, finish_reason: say.tool ? 'tool_calls' : 'stop' }] };
  },
  events(say, body) {
    const { message, finish_reason } = this.whole(say, body).choices[0];
    if (message.tool_calls) message.tool_calls[0].index = 0;
    const chunk = (delta, finish) => ['', { id: 'chat_yard', object: 'chat.completion.chunk', model: body.model, choices: [{ index: 0, delta, finish_reason: finish }] }];
    return [chunk(message, null), chunk({}, finish_reason), ['', '[DONE]']];
  },
};

const DIALECTS = [ANTHROPIC, RESPONSES, CHAT];
