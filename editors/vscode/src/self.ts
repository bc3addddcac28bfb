// Which editor this is, and which life of it.

import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';

export interface Self {
  /** The same for every window and every start. */
  readonly pluginId: string;
  readonly kind: string;
  readonly version: string;
  /** This window's life: the same over all its connections. */
  readonly instanceId: string;
  readonly startedAtMs: number;
}

export function self(context: vscode.ExtensionContext): Self {
  const kind = kindOf(vscode.env.appName, vscode.env.uriScheme);
  const version: unknown = context.extension.packageJSON.version;
  return { pluginId: kind, kind, version: String(version), instanceId: randomUUID(), startedAtMs: Date.now() };
}

function kindOf(appName: string, uriScheme: string): string {
  const name = `${appName} ${uriScheme}`.toLowerCase();
  for (const fork of ['code-server', 'cursor', 'void', 'vscodium', 'windsurf']) {
    if (name.includes(fork)) return fork;
  }
  if (name.includes('vscode') || name.includes('visual studio code')) return 'vscode';
  return uriScheme.toLowerCase().replace(/[^a-z0-9-]+/g, '-') || 'vscode';
}
