// find_in_project and regex_search: in all files beneath a folder, and in unsaved texts as they are in the editor.
// There is no API for it; the editor's own search runs the same ripgrep.

import * as nodePath from 'node:path';
import { Refusal, wrong } from '../../refusal';
import { faultOf as faultOfExpression, type Pattern, type Ripgrep } from '../../search/ripgrep';
import { told, type ToldHit } from '../../search/told';
import { faultOf, hitsAt } from '../../search/words';
import type { Call } from '../../verbs';
import { type Ground, groundAt, MOST_MATCHES, ripgrep, takeGlob, unsavedIn, USUAL_MATCHES } from './place';

/** What was found, by path and in order. */
export interface Found {
  readonly hits: readonly ToldHit[];
  readonly isComplete: boolean;
}

export async function find_in_project(call: Call): Promise<object> {
  const text = call.args.text('text');
  const ignoresCase = call.args.flag('ignore_case');
  const isWord = call.args.flag('word');
  return search(call, words(text, { ignoresCase, isWord }));
}

export async function regex_search(call: Call): Promise<object> {
  const text = call.args.text('pattern');
  const ignoresCase = call.args.flag('ignore_case');
  const isMultiline = call.args.flag('multiline');
  return search(call, expression(text, { ignoresCase, isMultiline }));
}

export function words(text: string, how: { readonly ignoresCase: boolean; readonly isWord?: boolean }): Pattern {
  const fault = faultOf(text);
  if (fault !== undefined) throw wrong(`\`text\` ${fault}`);
  return { text, isFixed: true, isWord: false, isMultiline: false, ...how };
}

export function expression(
  text: string,
  how: { readonly ignoresCase: boolean; readonly isMultiline?: boolean },
): Pattern {
  const fault = faultOfExpression(text);
  if (fault !== undefined) throw wrong(`\`pattern\` ${fault}`);
  if (text.includes('\0')) throw wrong('`pattern` cannot hold a NUL');
  return { text, isFixed: false, isWord: false, isMultiline: false, ...how };
}

/** ripgrep, which these verbs are only registered with. */
export function engine(): Ripgrep {
  if (!ripgrep) throw new Refusal('unsupported', 'this editor has no ripgrep of its own to search with');
  return ripgrep;
}

async function search(call: Call, pattern: Pattern): Promise<object> {
  const path = call.args.maybeText('path');
  const glob = takeGlob(call);
  const also = { hidden: call.args.flag('hidden'), ignored: call.args.flag('ignored') };
  const limit = call.args.number('limit', 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  const { hits, isComplete } = await found(call, pattern, await groundAt(call, path, glob, also), limit);
  return { matches: hits, files: new Set(hits.map((hit) => hit.path)).size, is_complete: isComplete };
}

/** Searches a file or a folder. */
export async function found(call: Call, pattern: Pattern, ground: Ground, limit: number): Promise<Found> {
  if (!ground.isFolder) return inText(call, pattern, ground.path, limit);
  const unsaved = await unsavedIn(call, ground);
  const hits: ToldHit[] = [];
  const { isComplete } = await engine().folder(pattern, ground.path, ground, call.stop, (some) => {
    if (unsaved.has(some.path) || !ground.wants(some.path)) return true;
    hits.push(...told(some, nodePath.join(ground.path, some.path), limit + 1 - hits.length));
    return hits.length <= limit;
  });
  // One that is cut has not come to its end, which is no fault of the search.
  const isCut = hits.length > limit;
  for (const text of unsaved.values()) hits.push(...(await inText(call, pattern, text.path, limit)).hits);
  hits.sort(
    (a, b) =>
      order(a.path, b.path) ||
      a.range.start.line - b.range.start.line ||
      a.range.start.character - b.range.start.character,
  );
  return { hits: hits.slice(0, limit), isComplete: isComplete && !isCut && hits.length <= limit };
}

async function inText(call: Call, pattern: Pattern, path: string, limit: number): Promise<Found> {
  const text = call.desk.texts.at(path) ?? (await call.desk.texts.open(call.desk.roots.uri(path)));
  const content = text.document.getText();
  const { hits, isCut } = hitsAt(content, await engine().text(pattern, content, limit, call.stop), limit);
  return { hits: hits.map(({ range, line_text }) => ({ path: text.path, range, line_text })), isComplete: !isCut };
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
