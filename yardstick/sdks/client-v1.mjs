// TypeScript SDK v1.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema, ElicitRequestSchema, LoggingMessageNotificationSchema, ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERED, SAMPLED, aborted, main, said } from './checks.mjs';

const { version } = JSON.parse(readFileSync(new URL('./node_modules/@modelcontextprotocol/sdk/package.json', import.meta.url)));

function transportTo({ how, url, headers, command, env }) {
  if (how === 'stdio') return new StdioClientTransport({ command: command[0], args: command.slice(1), env, stderr: 'ignore' });
  const Transport = how === 'http' ? StreamableHTTPClientTransport : SSEClientTransport;
  return new Transport(new URL(url), { requestInit: { headers } });
}

async function connected(target, seen) {
  const client = new Client({ name: 'yard-ts-1', version: '1.0.0' }, { capabilities: { sampling: {}, elicitation: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, () => { seen.sampled += 1; return SAMPLED; });
  client.setRequestHandler(ElicitRequestSchema, () => { seen.asked += 1; return ANSWERED; });
  client.setNotificationHandler(LoggingMessageNotificationSchema, (note) => { seen.logged.push(JSON.stringify(note.params.data)); });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => { seen.changed += 1; });
  const transport = transportTo(target);
  await client.connect(transport);
  const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
  return {
    can: ['progress', 'log', 'elicitation', 'sampling', 'list_changed'],
    protocol: transport.protocolVersion ?? null,
    tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: async (name, args, notes) => said(await call(name, args, notes ? { onprogress: (note) => notes(note.progress) } : {})),
    cancelled: (name, args, when) => aborted((signal) => call(name, args, { signal }), when),
    async close() {
      if (target.how === 'http') await transport.terminateSession();
      await client.close();
    },
  };
}

await main('ts-1', version, connected);
