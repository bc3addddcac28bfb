// Prism's hub as an MCP server of this editor, where the editor is new enough (1.101) to take one from an extension. Older ones
// load this file all the same: what they lack is looked for at run time.

import { readFile } from 'node:fs/promises';
import * as nodePath from 'node:path';
import * as vscode from 'vscode';
import type { Desk } from './desk';
import { find, home } from './find';

/** As package.json has it. */
const PROVIDER = 'prism.hub';
/** The clients' token: what an MCP client shows. Not the one for editors. */
const TOKEN = 'http-mcp-token';

/** The parts of the API that came after the version we are typed for. */
interface HttpServer {
  headers: Record<string, string>;
}
interface Provider {
  readonly onDidChangeMcpServerDefinitions: vscode.Event<void>;
  provideMcpServerDefinitions(): Promise<HttpServer[]>;
  resolveMcpServerDefinition(server: HttpServer): Promise<HttpServer | undefined>;
}
interface NewerApi {
  readonly lm?: { registerMcpServerDefinitionProvider?(id: string, provider: Provider): vscode.Disposable };
  readonly McpHttpServerDefinition?: new (
    label: string,
    uri: vscode.Uri,
    headers?: Record<string, string>,
    version?: string,
  ) => HttpServer;
}

export function offerHub(desk: Desk, context: vscode.ExtensionContext): vscode.Disposable {
  const { lm, McpHttpServerDefinition: Server } = vscode as unknown as NewerApi;
  if (!lm?.registerMcpServerDefinitionProvider || !Server) return vscode.Disposable.from();
  const changed = new vscode.EventEmitter<void>();
  const provider: Provider = {
    onDidChangeMcpServerDefinitions: changed.event,
    async provideMcpServerDefinitions() {
      const found = await find();
      if (!found || !isWanted() || (await isListed(found.port, context))) return [];
      const version = desk.line.state.is === 'connected' ? desk.line.state.version : undefined;
      return [new Server('Prism', vscode.Uri.parse(`http://127.0.0.1:${found.port}/mcp`), {}, version)];
    },
    // The editor keeps what is provided on its disk, and not what is resolved: so the token is only here.
    async resolveMcpServerDefinition(server) {
      const token = await readFile(nodePath.join(home(), TOKEN), 'utf8').catch(() => '');
      if (token.trim() === '') return undefined;
      server.headers = { ...server.headers, Authorization: `Bearer ${token.trim()}` };
      return server;
    },
  };
  return vscode.Disposable.from(
    changed,
    lm.registerMcpServerDefinitionProvider(PROVIDER, provider),
    // A daemon that comes back may have another port.
    desk.line.onState((state) => {
      if (state.is === 'connected') changed.fire();
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration('prism.hub') || change.affectsConfiguration('prism.home')) changed.fire();
    }),
  );
}

function isWanted(): boolean {
  return vscode.workspace.getConfiguration('prism').get<boolean>('hub.provide') !== false;
}

/** Whether the person's own lists have it, as `prism install vscode` writes it there. In a browser they may be out of sight. */
async function isListed(port: number, context: vscode.ExtensionContext): Promise<boolean> {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === 'file');
  const files = [
    nodePath.join(context.globalStorageUri.fsPath, '..', '..', 'mcp.json'),
    ...folders.map(({ uri }) => nodePath.join(uri.fsPath, '.vscode', 'mcp.json')),
  ];
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '');
    if (leadsTo(port, text)) return true;
  }
  return false;
}

/** Looks for the address, or for the shim, without reading all of JSON with comments. */
function leadsTo(port: number, text: string): boolean {
  const address = new RegExp(`"https?://(127\\.0\\.0\\.1|localhost|\\[::1\\]):${port}/`);
  const shim = /"command"\s*:\s*"([^"]*\/)?prism"/;
  return address.test(text) || (shim.test(text) && text.includes('"stdio"'));
}
