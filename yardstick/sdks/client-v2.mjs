// TypeScript SDK v2, which asks server/discover first if it is told to.
import { readFileSync } from 'node:fs';
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERED, SAMPLED, aborted, main, said } from './checks.mjs';

const { version } = JSON.parse(readFileSync(new URL('./node_modules/@modelcontextprotocol/client/package.json', import.meta.url)));

function transportTo({ how, url, headers, command, env }) {
  if (how === 'stdio') return new StdioClientTransport({ command: command[0], args: command.slice(1), env, stderr: 'ignore' });
  const Transport = how === 'http' ? StreamableHTTPClientTransport : SSEClientTransport;
  return new Transport(new URL(url), { requestInit: { headers } });
}

async function connected(target, seen) {
  const client = new Client({ name: 'yard-ts-2', version: '1.0.0' }, {
    capabilities: { sampling: {}, elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' },
  });
  client.setRequestHandler('sampling/createMessage', async () => { seen.sampled += 1; return SAMPLED; });
  client.setRequestHandler('elicitation/create', async () => { seen.asked += 1; return ANSWERED; });
  client.setNotificationHandler('notifications/message', (note) => { seen.logged.push(JSON.stringify(note.params.data)); });
  client.setNotificationHandler('notifications/tools/list_changed', () => { seen.changed += 1; });
  const transport = transportTo(target);
  await client.connect(transport);
  const isModern = client.getProtocolEra() === 'modern';
  if (isModern) await client.listen({ toolsListChanged: true }).catch(() => {}); // a server may not let it
  const meta = isModern ? { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } } : {};
  const call = (name, args, options) => client.callTool({ name, arguments: args, ...meta }, options);
  return {
    can: ['progress', 'log', 'elicitation', 'sampling', 'list_changed'],
    protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null,
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, notes) => said(await call(name, args, notes ? { onprogress: (note) => notes(note.progress) } : {})),
    cancelled: (name, args, when) => aborted((signal) => call(name, args, { signal }), when),
    async close() {
      if (target.how === 'http' && !isModern) await transport.terminateSession();
      await client.close();
    },
  };
}

await main('ts-2', version, connected);
