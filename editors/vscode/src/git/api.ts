// What is used of the git extension that comes with the editor: its API of version 1, as far as editors since 1.93 have it.

import * as vscode from 'vscode';

import { Refusal } from '../refusal';

export interface Api {
  readonly git: { readonly path: string };
  readonly state: 'uninitialized' | 'initialized';
  readonly onDidChangeState: vscode.Event<string>;
  readonly repositories: readonly Repository[];
  readonly onDidOpenRepository: vscode.Event<Repository>;
  readonly onDidCloseRepository: vscode.Event<Repository>;
  getRepository(uri: vscode.Uri): Repository | null;
  openRepository(root: vscode.Uri): Promise<Repository | null>;
}

export interface Repository {
  readonly rootUri: vscode.Uri;
  readonly state: State;
  /** Looks how it stands; `state` is new afterwards. */
  status(): Promise<void>;
  /** No paths are all. */
  add(paths: string[]): Promise<void>;
}

export interface State {
  readonly HEAD: Head | undefined;
  readonly mergeChanges: readonly Change[];
  readonly indexChanges: readonly Change[];
  readonly workingTreeChanges: readonly Change[];
  /** Only where the person has them listed apart. */
  readonly untrackedChanges?: readonly Change[];
  readonly onDidChange: vscode.Event<void>;
}

export interface Head {
  readonly name?: string;
  readonly commit?: string;
  readonly upstream?: { readonly remote: string; readonly name: string };
  readonly ahead?: number;
  readonly behind?: number;
}

export interface Change {
  readonly uri: vscode.Uri;
  readonly originalUri: vscode.Uri;
  readonly status: number;
}

interface Extension {
  readonly enabled: boolean;
  getAPI(version: 1): Api;
}

const NAME = 'vscode.git';

/** How long the extension may take to be ready. */
const READY = 10_000;

/** Whether the editor has a git that can be asked. */
export function hasGit(): boolean {
  return (
    vscode.extensions.getExtension(NAME) !== undefined &&
    vscode.workspace.getConfiguration('git').get('enabled') !== false
  );
}

export async function gitApi(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Extension>(NAME);
  if (extension === undefined) {
    throw new Refusal('unsupported', 'this editor has no git extension, or this folder is not trusted in it');
  }
  const { enabled, getAPI } = await bound(extension);
  if (!enabled) throw new Refusal('unsupported', 'git is switched off in this editor; its setting is `git.enabled`');
  const api = getAPI(1);
  await ready(api);
  return api;
}

async function bound(extension: { isActive: boolean; exports: Extension; activate(): Thenable<Extension> }) {
  const found = extension.isActive ? extension.exports : await extension.activate();
  return { enabled: found.enabled, getAPI: found.getAPI.bind(found) };
}

function ready(api: Api): Promise<void> {
  if (api.state === 'initialized') return Promise.resolve();
  return new Promise((resolve, reject) => {
    const over = (finish: () => void) => {
      clearTimeout(late);
      listening.dispose();
      finish();
    };
    const refusal = new Refusal('timed_out', "the editor's git extension is not ready; try again");
    const late = setTimeout(() => over(() => reject(refusal)), READY);
    const listening = api.onDidChangeState((state) => state === 'initialized' && over(resolve));
  });
}
