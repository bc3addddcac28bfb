// The folders that are open in this window, and the check that a path lies in them. The daemon has checked it before;
// but it opened the path by handle, and an editor opens it by name, so it is checked here again.

import * as nodePath from 'node:path';
import { fileURLToPath } from 'node:url';
import * as vscode from 'vscode';
import { isBeneath, realNameOf, realOf, realOr } from './paths';
import { Refusal, wrong } from './refusal';

interface Folder {
  readonly uri: vscode.Uri;
  /** As the window has it: it may lead there over links. */
  readonly path: string;
  /** Where it really is. */
  readonly real: string;
}

export class Roots implements vscode.Disposable {
  private folders: readonly Folder[] = [];
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;
  readonly onChange = this.changed.event;

  constructor() {
    this.read();
    this.subscription = vscode.workspace.onDidChangeWorkspaceFolders(() => {
      this.read();
      this.changed.fire();
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }

  /** Where the folders really are. */
  get all(): readonly string[] {
    return this.folders.map((folder) => folder.real);
  }

  /** The first folder: relative paths are meant in it. */
  get first(): string {
    const [first] = this.folders;
    if (!first) throw new Refusal('outside_root', 'no folder is open in this window');
    return first.real;
  }

  /** Whether a real path is one of the folders or beneath one. */
  holds(real: string): boolean {
    return this.folders.some((folder) => isBeneath(real, folder.real));
  }

  /** Returns the file or folder that a path leads to, as this window calls it. Refused if it leads elsewhere. */
  async file(written: string): Promise<vscode.Uri> {
    return this.uri(await this.real(written));
  }

  /** The same as a path: where it really is. */
  async real(written: string): Promise<string> {
    return this.checked(written, this.resolved(written, realOf));
  }

  /** The same of a name that is not followed: a link is itself. */
  async realName(written: string): Promise<string> {
    return this.checked(written, this.resolved(written, realNameOf));
  }

  /** How this window calls a real path. */
  uri(real: string): vscode.Uri {
    const folder = this.folderOf(real);
    if (!folder || folder.path === folder.real) return vscode.Uri.file(real);
    return vscode.Uri.joinPath(folder.uri, ...nodePath.relative(folder.real, real).split('/').filter(Boolean));
  }

  /** The real path of a file of this window's; `undefined` for what is no file, or in none of the folders. */
  path(uri: vscode.Uri): string | undefined {
    if (uri.scheme !== 'file') return undefined;
    const real = realOr(uri.fsPath);
    return this.holds(real) ? real : undefined;
  }

  /** The nearest folder above a real path. */
  rootOf(real: string): string | undefined {
    return this.folderOf(real)?.real;
  }

  private folderOf(real: string): Folder | undefined {
    const above = this.folders.filter((folder) => isBeneath(real, folder.real));
    return above.sort((a, b) => b.real.length - a.real.length)[0];
  }

  private resolved(written: string, resolve: (path: string) => string): string {
    if (written === '' || written.includes('\0')) throw wrong(`${JSON.stringify(written)} is no path`);
    try {
      const path = written.startsWith('file:') ? fileURLToPath(written) : written;
      return resolve(nodePath.isAbsolute(path) ? path : nodePath.join(this.first, path));
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw wrong(`${JSON.stringify(written)} cannot be found: ${why}`);
    }
  }

  private checked(written: string, real: string): string {
    if (this.holds(real)) return real;
    const folders = this.folders.map((folder) => JSON.stringify(folder.real)).join(', ');
    throw new Refusal(
      'outside_root',
      `${JSON.stringify(written)} is in none of this window's folders: ${folders || 'none is open'}`,
    );
  }

  private read(): void {
    const open = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === 'file');
    this.folders = open.map(({ uri }) => ({ uri, path: uri.fsPath, real: realOr(uri.fsPath) }));
  }
}
