// get_completions: what could stand at a place, the likeliest first.

import * as vscode from 'vscode';
import { rankOf, typedIn } from '../../language/rank';
import { Site } from '../../language/site';
import { nobody, speakersOf } from '../../language/speakers';
import { wrong } from '../../refusal';
import type { Call } from '../../verbs';

const USUAL_LIMIT = 50;
const MAX_LIMIT = 500;

/** Letters of a documentation that are told. */
const MAX_WORDS = 1_000;

/** By the editor's numbers. */
const KINDS = (
  'text method function constructor field variable class interface module property unit value enum keyword ' +
  'snippet color file reference folder enum_member constant struct event operator type_parameter'
).split(' ');

export async function get_completions(call: Call): Promise<object> {
  const path = call.args.text('path');
  const position = call.args.position('position');
  const limit = call.args.number('limit', 1, MAX_LIMIT) ?? USUAL_LIMIT;
  call.args.done();
  if (!position) throw wrong('`position` is missing: {line, character}');
  const site = await Site.open(call, path);
  const place = site.place(position);
  const command = 'vscode.executeCompletionItemProvider';
  const isEmpty = (list: vscode.CompletionList | undefined): boolean => !list || list.items.every(isWord);
  const list = await site.ask<vscode.CompletionList>('completes code', command, [site.document.uri, place], isEmpty);
  const items = list?.items ?? [];
  // Words that stand in the text anyway are offered by the editor itself, whatever the language.
  if (items.every(isWord) && speakersOf(site.language).length === 0) throw nobody(site.language, 'completes code');
  const fitting = chosen(items, typedIn(site.document.lineAt(place.line).text.slice(0, place.character)));
  const version = call.desk.texts.of(site.document)?.version ?? site.text.version;
  return {
    items: fitting.slice(0, limit).map(told),
    is_complete: !(list?.isIncomplete ?? false) && fitting.length <= limit,
    version,
  };
}

function isWord(item: vscode.CompletionItem): boolean {
  return item.kind === vscode.CompletionItemKind.Text;
}

/** The items that fit what was typed, the best first. */
function chosen(items: readonly vscode.CompletionItem[], typed: string): vscode.CompletionItem[] {
  const ranked = items.flatMap((item) => {
    const rank = rankOf((item.filterText ?? labelOf(item)).toLowerCase(), typed);
    return rank === undefined ? [] : [{ item, rank, sort: item.sortText ?? labelOf(item) }];
  });
  ranked.sort((a, b) => a.rank - b.rank || (a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : 0));
  return ranked.map(({ item }) => item);
}

function labelOf(item: vscode.CompletionItem): string {
  return typeof item.label === 'string' ? item.label : item.label.label;
}

function told(item: vscode.CompletionItem): object {
  const label = labelOf(item);
  const { insertText, documentation } = item;
  const words = typeof documentation === 'string' ? documentation : documentation?.value;
  return {
    label,
    kind: item.kind === undefined ? null : (KINDS[item.kind] ?? null),
    detail:
      item.detail ?? (typeof item.label === 'string' ? null : (item.label.detail ?? item.label.description ?? null)),
    insert_text: typeof insertText === 'string' ? insertText : (insertText?.value ?? label),
    // With places to fill in: `${1:name}`.
    ...(typeof insertText === 'object' ? { is_snippet: true } : {}),
    ...(words ? { documentation: [...words].slice(0, MAX_WORDS).join('') } : {}),
  };
}
