// Where the daemon is: its folder holds a file that says so, and the secret for editors.

import { readFile } from 'node:fs/promises';
import { type FSWatcher, watch } from 'node:fs';
import { homedir } from 'node:os';
import * as nodePath from 'node:path';
import * as vscode from 'vscode';

/** A daemon, and what it takes to be let in. */
export interface Found {
  readonly port: number;
  readonly socket: string | undefined;
  readonly token: string;
}

const REGISTRATION = 'http-mcp.json';
const TOKEN = 'plugin-token';

/** Prism's folder. */
export function home(): string {
  const set = vscode.workspace.getConfiguration('prism').get<string>('home')?.trim();
  if (set) return set === '~' || set.startsWith('~/') ? nodePath.join(homedir(), set.slice(1)) : set;
  return process.env['PRISM_HOME'] || nodePath.join(homedir(), '.prism');
}

/** Reads where the daemon is; `undefined` if there is none. That is no error: it may come. */
export async function find(): Promise<Found | undefined> {
  try {
    const folder = home();
    const registration: unknown = JSON.parse(await readFile(nodePath.join(folder, REGISTRATION), 'utf8'));
    const token = (await readFile(nodePath.join(folder, TOKEN), 'utf8')).trim();
    if (typeof registration !== 'object' || registration === null) return undefined;
    const { port, socket } = registration as { port?: unknown; socket?: unknown };
    if (typeof port !== 'number' || !token) return undefined;
    return { port, token, socket: typeof socket === 'string' ? socket : undefined };
  } catch {
    return undefined;
  }
}

/** Calls back when a daemon may have come: the file was written, or another folder was set. */
export class Lookout implements vscode.Disposable {
  private watcher: FSWatcher | undefined;
  private readonly settings: vscode.Disposable;

  constructor(private readonly appeared: () => void) {
    this.follow();
    this.settings = vscode.workspace.onDidChangeConfiguration((change) => {
      if (!change.affectsConfiguration('prism.home')) return;
      this.end();
      this.follow();
      appeared();
    });
  }

  dispose(): void {
    this.settings.dispose();
    this.end();
  }

  /** Watches the folder, unless it is watched. Where it is not there, a daemon is found by trying again. */
  follow(): void {
    if (this.watcher) return;
    try {
      this.watcher = watch(home(), { persistent: false }, (_, name) => {
        if (name === REGISTRATION) this.appeared();
      });
      this.watcher.on('error', () => this.end());
    } catch {
      this.watcher = undefined;
    }
  }

  private end(): void {
    this.watcher?.close();
    this.watcher = undefined;
  }
}
