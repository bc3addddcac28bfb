// goto_definition: where something is defined, declared, used. Of what lies outside of the window's folders it is told
// where it is, and nothing of what stands there.

import { readFile, stat } from 'node:fs/promises';
import * as vscode from 'vscode';
import { MAX_BYTES } from '../../disk';
import { Site } from '../../language/site';
import { isTypeScript } from '../../language/typescript';
import { realOr } from '../../paths';
import { toldSpan } from '../../place';
import { Refusal, wrong } from '../../refusal';
import { lineFrom } from '../../search/words';
import type { Call } from '../../verbs';

/** Places in one answer. Of more the answer says that it is not complete. */
const MAX_PLACES = 1_000;

/** Files of which lines are shown; places in further ones come without. */
const MAX_FILES = 100;

interface Kind {
  readonly command: string;
  readonly what: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  definition: { command: 'vscode.executeDefinitionProvider', what: 'finds definitions' },
  declaration: { command: 'vscode.executeDeclarationProvider', what: 'finds declarations' },
  type_definition: { command: 'vscode.executeTypeDefinitionProvider', what: 'finds types' },
  implementation: { command: 'vscode.executeImplementationProvider', what: 'finds implementations' },
  references: { command: 'vscode.executeReferenceProvider', what: 'finds references' },
  symbols: { command: 'vscode.executeDocumentSymbolProvider', what: 'lists symbols' },
};

/** By the editor's numbers. */
const SYMBOLS = (
  'file module namespace package class method property field constructor enum interface function variable ' +
  'constant string number boolean array object key null enum_member struct event operator type_parameter'
).split(' ');

/** A place that somebody names. */
interface Found {
  readonly uri: vscode.Uri;
  readonly range: vscode.Range;
  readonly symbol?: { readonly name: string; readonly kind: string; readonly container: string | null };
}

type Symbol = vscode.DocumentSymbol | vscode.SymbolInformation;

export async function goto_definition(call: Call): Promise<object> {
  const path = call.args.text('path');
  const position = call.args.position('position');
  const word = call.args.maybeText('kind') ?? 'definition';
  call.args.done();
  const kind = Object.hasOwn(KINDS, word) ? KINDS[word] : undefined;
  if (!kind) {
    const kinds = 'definition, declaration, type_definition, implementation, references or symbols';
    throw wrong(`\`kind\` is ${kinds}, not ${JSON.stringify(word)}`);
  }
  if (!position && word !== 'symbols') throw wrong('`position` is missing: {line, character}');
  const site = await Site.open(call, path);
  const place = position && site.place(position);
  if (word === 'declaration' && isTypeScript(site.document)) {
    throw new Refusal(
      'unsupported',
      'TypeScript knows no declarations apart from definitions; ask for the kind "definition"',
    );
  }
  const { uri } = site.document;
  const isEmpty = (list: readonly unknown[] | undefined): boolean => !list || list.length === 0;
  const found = await (word === 'symbols'
    ? site.ask<Symbol[]>(kind.what, kind.command, [uri], isEmpty).then((symbols) => symbolsOf(uri, symbols ?? []))
    : site
        .ask<(vscode.Location | vscode.LocationLink)[]>(kind.what, kind.command, [uri, place], isEmpty)
        .then((all) => (all ?? []).map(foundAt)));
  const lines = new ShownLines(call);
  const locations: object[] = [];
  for (const one of found.slice(0, MAX_PLACES)) locations.push(await told(call, one, lines));
  return { locations, is_complete: found.length <= MAX_PLACES };
}

function foundAt(place: vscode.Location | vscode.LocationLink): Found {
  if ('targetUri' in place) return { uri: place.targetUri, range: place.targetSelectionRange ?? place.targetRange };
  return { uri: place.uri, range: place.range };
}

function symbolsOf(uri: vscode.Uri, symbols: readonly Symbol[], within: string | null = null): Found[] {
  return symbols.flatMap((symbol): Found[] => {
    const isNested = 'children' in symbol;
    const container = within ?? (('containerName' in symbol && symbol.containerName) || null);
    const about = { name: symbol.name, kind: SYMBOLS[symbol.kind] ?? 'symbol', container };
    const found = {
      uri: isNested ? uri : symbol.location.uri,
      range: isNested ? symbol.range : symbol.location.range,
      symbol: about,
    };
    return [found, ...(isNested ? symbolsOf(uri, symbol.children, symbol.name) : [])];
  });
}

async function told(call: Call, found: Found, lines: ShownLines): Promise<object> {
  const isFile = found.uri.scheme === 'file';
  const path = isFile ? (call.desk.roots.path(found.uri) ?? realOr(found.uri.fsPath)) : found.uri.toString();
  const isGranted = isFile && call.desk.roots.holds(path);
  const line = isGranted ? await lines.at(found.uri, path, found.range.start.line) : undefined;
  return {
    path,
    range: toldSpan(found.range),
    is_granted: isGranted,
    ...(line === undefined ? {} : { line_text: line }),
    ...(found.symbol ?? {}),
  };
}

/**
 * Lines of files, each read once: of open texts as they are, of others from the disk, so that nothing is opened for it.
 */
class ShownLines {
  private readonly files = new Map<string, readonly string[]>();

  constructor(private readonly call: Call) {}

  async at(uri: vscode.Uri, path: string, line: number): Promise<string | undefined> {
    const key = uri.toString();
    let lines = this.files.get(key);
    if (!lines) {
      if (this.files.size >= MAX_FILES || this.call.stop.isCancellationRequested) return undefined;
      const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === key);
      lines = (open ? open.getText() : await textAt(path)).split(/\r\n|\r|\n/);
      this.files.set(key, lines);
    }
    const text = lines[line];
    return text === undefined ? undefined : lineFrom(text, 0);
  }
}

/** The text of a file; empty if it is none to be shown. */
async function textAt(path: string): Promise<string> {
  try {
    return (await stat(path)).size > MAX_BYTES ? '' : await readFile(path, 'utf8');
  } catch {
    return '';
  }
}
