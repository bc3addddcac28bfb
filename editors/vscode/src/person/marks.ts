// Where an agent has just edited: its places are lit for some seconds with its name beside them, and files with unsaved
// edits of an agent's have a badge in the explorer until they are saved.

import * as vscode from 'vscode';
import type { Changed, Texts } from '../texts';
import type { Board } from './board';
import { type Place, placesAfter, shift } from './places';
import { cut } from './words';

/** How long a place is lit, and how long it then fades. */
const FRESH_MS = 5000;
const FADING_MS = 5000;
/** Places of a text that are lit at a time. An edit with more lights the last ones only. */
const MAX_PLACES = 400;

interface Lit extends Place {
  readonly agent: string;
  readonly at: number;
}

export class Marks implements vscode.FileDecorationProvider, vscode.Disposable {
  private readonly places = new Map<string, Lit[]>();
  /** Files with an agent's unsaved edits, and whose. */
  private readonly unsaved = new Map<string, Set<string>>();
  /** Whose change each text had last, until the person changes it. */
  private readonly last = new Map<string, { version: number; agent: string }>();
  private readonly badges = new vscode.EventEmitter<vscode.Uri>();
  private readonly fresh = light('prism.agentEditBackground', 'prism.agentEditRuler');
  private readonly fading = light('prism.agentEditFadingBackground', undefined);
  private readonly names = vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  readonly onDidChangeFileDecorations = this.badges.event;

  constructor(
    texts: Texts,
    private readonly board: Board,
  ) {
    this.parts = [
      this.fresh,
      this.fading,
      this.names,
      this.badges,
      // The texts hear of a change first and know whose it is; the editor's own event, which comes after it, has the places.
      texts.onChange((changed) => this.noted(changed)),
      texts.onDirty((document) => this.dirtied(document)),
      vscode.workspace.onDidChangeTextDocument((change) => this.changed(change)),
      vscode.workspace.onDidSaveTextDocument((document) => this.saved(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.saved(document)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.draw()),
      vscode.window.registerFileDecorationProvider(this),
    ];
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    const agents = this.unsaved.get(uri.toString());
    if (!agents) return undefined;
    const tooltip = `Unsaved edits of ${[...agents].join(', ')}`;
    return new vscode.FileDecoration('✎', tooltip, new vscode.ThemeColor('prism.agentForeground'));
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
  }

  private noted({ text: { document }, by }: Changed): void {
    const key = document.uri.toString();
    if (by === undefined) this.last.delete(key);
    else this.last.set(key, { version: document.version, agent: this.board.nameOf(by) });
  }

  /** Keeps the lit places where they are in the text while it changes around them, and lights what an agent has changed. */
  private changed({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const key = document.uri.toString();
    const last = this.last.get(key);
    const places = this.places.get(key) ?? [];
    if (contentChanges.length === 0 || (places.length === 0 && !last)) return;
    // They are about one text; from the last to the first, each is about places that the others leave alone.
    const changes = [...contentChanges].sort((a, b) => b.rangeOffset - a.rangeOffset);
    for (const place of places) for (const change of changes) shift(place, change);
    if (last?.version !== document.version) return;
    const made = placesAfter(changes).map((place): Lit => ({ ...place, agent: last.agent, at: Date.now() }));
    this.places.set(key, [...places, ...made].slice(-MAX_PLACES));
    if (document.isDirty) this.dirtied(document);
    this.draw();
  }

  /** The editor says a little after a change that a text is unsaved. What a file was written with is saved already. */
  private dirtied(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    if (!document.isDirty) return this.saved(document);
    const last = this.last.get(key);
    if (!last || this.unsaved.get(key)?.has(last.agent)) return;
    this.unsaved.set(key, (this.unsaved.get(key) ?? new Set()).add(last.agent));
    this.badges.fire(document.uri);
  }

  private saved({ uri }: vscode.TextDocument): void {
    this.last.delete(uri.toString());
    if (this.unsaved.delete(uri.toString())) this.badges.fire(uri);
  }

  private draw(): void {
    clearTimeout(this.timer);
    const now = Date.now();
    for (const [key, places] of this.places) {
      const lit = places.filter((place) => place.at + FRESH_MS + FADING_MS > now);
      if (lit.length > 0) this.places.set(key, lit);
      else this.places.delete(key);
    }
    for (const editor of vscode.window.visibleTextEditors) this.drawIn(editor, now);
    const turns = [...this.places.values()].flat().flatMap(({ at }) => [at + FRESH_MS, at + FRESH_MS + FADING_MS]);
    const next = Math.min(...turns.filter((turn) => turn > now));
    if (Number.isFinite(next)) this.timer = setTimeout(() => this.draw(), next - now + 10);
  }

  private drawIn(editor: vscode.TextEditor, now: number): void {
    const { document } = editor;
    const places = this.places.get(document.uri.toString()) ?? [];
    const rangeOf = ({ start, end }: Lit): vscode.Range =>
      new vscode.Range(document.positionAt(start), document.positionAt(end));
    const isFresh = ({ at }: Lit): boolean => at + FRESH_MS > now;
    editor.setDecorations(this.fresh, places.filter(isFresh).map(rangeOf));
    editor.setDecorations(this.fading, places.filter((place) => !isFresh(place)).map(rangeOf));
    editor.setDecorations(this.names, beside(document, places, isFresh));
  }
}

/** A name at the end of the last line of each agent's newest edit. */
function beside(
  document: vscode.TextDocument,
  places: Lit[],
  isFresh: (place: Lit) => boolean,
): vscode.DecorationOptions[] {
  const newest = new Map<string, Lit>();
  for (const place of places) {
    const other = newest.get(place.agent);
    if (!other || place.at > other.at || (place.at === other.at && place.end > other.end))
      newest.set(place.agent, place);
  }
  const atLine = new Map<number, Lit[]>();
  for (const place of newest.values()) {
    // An edit that ends with a line break has changed the line before it.
    const end = document.positionAt(place.end);
    const line = end.character === 0 && end.line > 0 && place.end > place.start ? end.line - 1 : end.line;
    atLine.set(line, [...(atLine.get(line) ?? []), place]);
  }
  return [...atLine].map(([line, here]) => {
    const range = document.lineAt(line).range;
    const text = cut(here.map(({ agent }) => agent).join(', '), 60);
    const color = new vscode.ThemeColor(here.some(isFresh) ? 'prism.agentForeground' : 'prism.agentFadingForeground');
    const after = { contentText: `✎ ${text}`, margin: '0 0 0 2ch', color, fontStyle: 'italic' };
    return { range: new vscode.Range(range.end, range.end), renderOptions: { after } };
  });
}

function light(background: string, ruler: string | undefined): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor(background),
    borderRadius: '2px',
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
    ...(ruler && {
      overviewRulerColor: new vscode.ThemeColor(ruler),
      overviewRulerLane: vscode.OverviewRulerLane.Center,
    }),
  });
}
