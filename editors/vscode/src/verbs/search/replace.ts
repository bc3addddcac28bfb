// replace_text: words and expressions replaced in one file or in all beneath a folder, in the texts, all at once or not
// at all.

import * as vscode from 'vscode';
import { cut, differenceOf, type Planned } from '../../language/changes';
import { Refusal, wrong } from '../../refusal';
import type { Pattern } from '../../search/ripgrep';
import { find } from '../../search/words';
import type { Text } from '../../texts';
import type { Call } from '../../verbs';
import { groundAt, MOST_MATCHES, takeGlob, USUAL_MATCHES } from './place';
import { engine, expression, found, words } from './project';

/** Files of one action. If there are more, none is changed. */
const MAX_FILES = 200;

/** The most that one action puts in, in bytes. */
const MAX_NEW = 8 << 20;

export async function replace_text(call: Call): Promise<object> {
  const [text, expressed] = [call.args.maybeText('text'), call.args.maybeText('pattern')];
  const newText = call.args.text('new_text');
  const path = call.args.maybeText('path');
  const glob = takeGlob(call);
  const ignoresCase = call.args.flag('ignore_case');
  const isPreview = call.args.flag('preview');
  const limit = call.args.number('limit', 1, MOST_MATCHES) ?? USUAL_MATCHES;
  call.args.done();
  if (newText.includes('\0')) throw wrong('a text cannot hold a NUL');
  const pattern = patternOf(text, expressed, ignoresCase);
  const ground = await groundAt(call, path, glob, { hidden: false, ignored: false });
  const { hits, isComplete } = await found(call, pattern, ground, limit);
  const paths = [...new Set(hits.map((hit) => hit.path))];
  if (paths.length > MAX_FILES)
    throw tooMany(`it stands in ${paths.length} files; at most ${MAX_FILES} can be changed at once`);
  if (hits.length >= limit && !isComplete)
    throw tooMany(`it stands in more than ${limit} places, and \`limit\` is that`);
  const plan: Planned[] = [];
  for (const one of paths) {
    const open = await call.desk.texts.open(await call.desk.roots.file(one));
    const edits = await editsOf(call, pattern, open, newText, limit);
    if (edits.length > 0) plan.push({ text: open, edits });
  }
  const replacements = plan.reduce((sum, { edits }) => sum + edits.length, 0);
  if (replacements > limit) throw new Refusal('failed', 'the files change while they are searched; try again');
  const bytes = plan.flatMap(({ edits }) => edits).reduce((sum, edit) => sum + Buffer.byteLength(edit.newText), 0);
  if (bytes > MAX_NEW) throw tooMany(`it would put in more than ${MAX_NEW} bytes`);
  if (isPreview) {
    const [files, whole] = [
      plan.map(({ text: { path: file, version }, edits }) => toldFile(file, version, edits)),
      differenceOf(plan),
    ];
    const diff = cut(whole);
    return { files, replacements, is_preview: true, is_complete: isComplete && diff.length === whole.length, diff };
  }
  const changes = new Map(plan.map(({ text: { uri, version }, edits }) => [uri, { version, edits }]));
  const made = plan.length > 0 ? await call.desk.texts.apply(changes, call.session, 'replace') : [];
  const files = made.map((after, i) => toldFile(after.path, after.version, plan[i]?.edits ?? []));
  return { files, replacements, is_preview: false, is_complete: isComplete };
}

function patternOf(text: string | undefined, expressed: string | undefined, ignoresCase: boolean): Pattern {
  if (text !== undefined && expressed !== undefined) throw wrong('give `text` or `pattern`, not both');
  if (text !== undefined) return words(text, { ignoresCase });
  if (expressed !== undefined) return expression(expressed, { ignoresCase });
  throw wrong('`text` is missing: a string; or `pattern`, an expression');
}

/** What becomes of one text, as it is now. */
async function editsOf(
  call: Call,
  pattern: Pattern,
  text: Text,
  newText: string,
  limit: number,
): Promise<vscode.TextEdit[]> {
  const { document } = text;
  const content = document.getText();
  // One more than may be, so that it shows.
  const places = pattern.isFixed
    ? find(content, pattern.text, pattern.ignoresCase, limit + 1).hits.map(({ start, end }) => [start, end] as const)
    : await engine().text(pattern, content, limit + 1, call.stop);
  const news = pattern.isFixed ? undefined : await engine().replaced(pattern, content, newText, call.stop);
  if (news && news.length < places.length)
    throw new Refusal('failed', `${JSON.stringify(text.path)} could not be searched to its end; try again`);
  // The text may have moved on while it was searched; then the edits are refused by its version.
  return places
    .map(([start, end], i) => {
      const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
      return { edit: new vscode.TextEdit(range, news?.[i] ?? newText), old: content.slice(start, end) };
    })
    .filter(({ edit, old }) => edit.newText !== old)
    .map(({ edit }) => edit);
}

function toldFile(path: string, version: number, edits: readonly unknown[]): object {
  return { path, version, replacements: edits.length };
}

function tooMany(why: string): Refusal {
  return new Refusal('too_large', `${why}; \`path\` and \`glob\` narrow it down. Nothing was changed`);
}
