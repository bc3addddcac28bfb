// What a program with MCP servers in its config does: reads where the server is and what to send along, lists its tools,
// calls one.   node configured.mjs CLIENT FILE TOOL TEXT     (TypeScript SDK v1; one JSON line)
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [name, file, tool, text] = process.argv.slice(2);
const { url, headers } = JSON.parse(readFileSync(file, 'utf8')).mcpServers.prism;
const client = new Client({ name, version: '1.0.0' }, { capabilities: { roots: {} } });
const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
await client.connect(transport);
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: tool, arguments: { text } });
await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ url, tools: tools.map((one) => one.name), said: content[0].text }));
