// get_errors. Diagnostics are told with the version that they are about: servers need time, and an empty list must not
// look like "no errors" before anybody has looked.

import * as vscode from 'vscode';
import { ageOf, isSilent, untilHeard } from '../../language/heard';
import { Site } from '../../language/site';
import { nobody, speakersOf } from '../../language/speakers';
import { hasTab } from '../../language/tab';
import { diagnose, isItsOwn, isTypeScript } from '../../language/typescript';
import { toldSpan } from '../../place';
import type { Call } from '../../verbs';

/** How long is waited for diagnostics of the text as it is, if nothing else is said, and at most. */
const USUAL_WAIT_MS = 10_000;
const LONGEST_WAIT_MS = 60_000;

/** Diagnostics in one answer. Of more the answer says that it is not complete. */
const MAX_TOLD = 5_000;

/** Texts that TypeScript's server is asked about in one answer that is about all. Further ones make it incomplete. */
const MAX_ASKED = 50;

const UNHEARD =
  'nobody has told errors of this text yet; some extensions look only at files in a tab, where switch_buffer puts them';

const SEVERITIES = ['error', 'warning', 'information', 'hint'] as const;

export async function get_errors(call: Call): Promise<object> {
  const path = call.args.maybeText('path');
  const said = call.args.number('wait_ms', 0, LONGEST_WAIT_MS);
  call.args.done();
  const began = Date.now();
  if (path === undefined) return ofAll(call, began + (said ?? USUAL_WAIT_MS));
  const site = await Site.open(call, path);
  const until = began + (said ?? (isSilent(site.document) ? 0 : USUAL_WAIT_MS));
  return (isTypeScript(site.document) && (await ofTypeScript(site, until))) || ofOthers(site, until);
}

/** Asks TypeScript's server; `undefined` if that cannot be done here. */
async function ofTypeScript(site: Site, until: number): Promise<object | undefined> {
  const { document, call } = site;
  for (;;) {
    const before = document.version;
    const asked = diagnose(document, call.stop);
    const answer = await within(until, asked, call.stop);
    // Whatever the editor shows by now is told, as not complete.
    if (answer === 'late') return told(site, vscode.languages.getDiagnostics(document.uri), undefined);
    if (!answer) return undefined;
    if (document.version !== before && Date.now() < until && !call.stop.isCancellationRequested) continue;
    const others = vscode.languages.getDiagnostics(document.uri).filter((one) => !isItsOwn(one));
    return told(site, [...answer, ...others], document.version - before);
  }
}

async function ofOthers(site: Site, until: number): Promise<object> {
  const { document, call } = site;
  const known = (): vscode.Diagnostic[] => vscode.languages.getDiagnostics(document.uri);
  if (known().length === 0 && ageOf(document) === undefined) {
    if (speakersOf(site.language).length === 0) throw nobody(site.language, 'tells errors');
    await within(until, site.ready(), call.stop);
  }
  await untilHeard(document, until, call.stop);
  return told(site, known(), ageOf(document));
}

/** `age`: how many texts ago it was that the diagnostics are about; `undefined` if that is not known. */
function told(site: Site, diagnostics: readonly vscode.Diagnostic[], age: number | undefined): object {
  const { desk } = site.call;
  const now = desk.texts.of(site.document)?.version ?? site.text.version;
  const speakers = speakersOf(site.language).map((extension) => extension.id);
  return {
    diagnostics: diagnostics.slice(0, MAX_TOLD).map((one) => toldOne(site.text.path, one)),
    version: now,
    analyzed_version: age === undefined ? null : now - age,
    is_complete: age === 0 && diagnostics.length <= MAX_TOLD,
    server: { name: speakers.join(', ') || null, root: desk.roots.rootOf(site.text.path) ?? null, busy_with: null },
    ...(age === undefined && !hasTab(site.document) ? { why: UNHEARD } : {}),
  };
}

/**
 * All that is known of the window's folders. Nothing is opened for it, so files that nobody has looked at are not in
 * it.
 */
async function ofAll({ desk, stop }: Call, until: number): Promise<object> {
  const found = new Map<string, readonly vscode.Diagnostic[]>();
  for (const [uri, diagnostics] of vscode.languages.getDiagnostics()) {
    const path = desk.roots.path(uri);
    if (path !== undefined) found.set(path, diagnostics);
  }
  let isComplete = true;
  let asked = 0;
  for (const { path, document } of desk.texts.all()) {
    // Of texts that are in no tab the editor knows nothing by itself.
    const own =
      isTypeScript(document) && (asked += 1) <= MAX_ASKED
        ? await within(until, diagnose(document, stop), stop)
        : undefined;
    if (Array.isArray(own)) found.set(path, [...own, ...(found.get(path) ?? []).filter((one) => !isItsOwn(one))]);
    else if (speakersOf(document.languageId).length > 0) isComplete &&= ageOf(document) === 0;
  }
  const told = [...found].flatMap(([path, diagnostics]) => diagnostics.map((one) => toldOne(path, one)));
  const sources = new Set([...found.values()].flat().map(({ source }) => source));
  return {
    diagnostics: told.slice(0, MAX_TOLD),
    version: null,
    analyzed_version: null,
    is_complete: isComplete && asked <= MAX_ASKED && told.length <= MAX_TOLD,
    server: [...sources].filter((source) => source !== undefined).sort(),
  };
}

function toldOne(path: string, one: vscode.Diagnostic): object {
  const code = typeof one.code === 'object' ? one.code.value : one.code;
  return {
    path,
    range: toldSpan(one.range),
    severity: SEVERITIES[one.severity] ?? 'error',
    message: one.message,
    source: one.source ?? null,
    code: code ?? null,
  };
}

async function within<T>(until: number, doing: Promise<T>, stop: vscode.CancellationToken): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  let stopped: vscode.Disposable | undefined;
  const late = new Promise<'late'>((done) => {
    timer = setTimeout(() => done('late'), Math.max(0, until - Date.now()));
    stopped = stop.onCancellationRequested(() => done('late'));
  });
  try {
    return await Promise.race([doing, late]);
  } finally {
    clearTimeout(timer);
    stopped?.dispose();
  }
}
