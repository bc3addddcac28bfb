// An agent asks for access: the question, what can be made less, and the person's word.

import * as vscode from 'vscode';
import type { Board, Narrowed } from './board';
import type { Shelf } from './diff';
import { ask, askText, askWhich, type Heading, type Row } from './pick';
import type { RequestView } from './views';
import {
  ago,
  count,
  cut,
  isRisky,
  label,
  remaining,
  riskyFirst,
  scopeInShort,
  scopeInWords,
  span,
  visibleLines,
} from './words';

/** Times that are offered, as the console does; never longer than what was asked for. */
const TIMES_S = [5 * 60, 15 * 60, 60 * 60, 8 * 60 * 60];
/** What fits into a row. */
const ROW = 96;

type Step = 'look' | 'scopes' | 'roots' | 'time' | 'allow' | 'watch' | 'deny' | 'deny why';

/** Asks until there is a decision. Returns what was decided, or `undefined` if the person put it aside or it is gone. */
export async function askAboutRequest(
  request: RequestView,
  board: Board,
  shelf: Shelf,
  gone: vscode.CancellationToken,
): Promise<string | undefined> {
  let scopes = [...request.scopes];
  let roots = [...request.roots];
  let seconds = request.seconds;
  for (;;) {
    const rows = form(request, scopes, roots, seconds);
    const title = `${label(request.agent)} asks for access`;
    const step = await ask<Step>(
      { title, hint: 'Choose a row. Esc puts it aside; nothing is allowed by that.', rows },
      gone,
    );
    switch (step) {
      case undefined:
        return undefined;
      case 'look':
        await shelf.showText(`What ${request.agent} asks for.txt`, inFull(request), request.id);
        if ((await shelf.look(request.id, 'request', gone)) === undefined) return undefined;
        break;
      case 'scopes':
        scopes = (await chooseScopes(request, scopes, gone)) ?? scopes;
        break;
      case 'roots':
        roots = (await chooseRoots(request, roots, gone)) ?? roots;
        break;
      case 'time':
        seconds = (await chooseTime(request, gone)) ?? seconds;
        break;
      case 'allow':
      case 'watch': {
        const narrowed: Narrowed = {
          ...(scopes.length < request.scopes.length && { scopes }),
          ...(roots.length < request.roots.length && { roots }),
          ...(seconds !== request.seconds && { seconds }),
          ...(step === 'watch' && { confirmChanges: true }),
        };
        await board.allow(request, narrowed);
        return `${request.agent} may work for ${span(seconds)}`;
      }
      case 'deny':
        await board.deny(request);
        return `${request.agent} was denied`;
      case 'deny why': {
        const reason = await askText(
          `Why not? ${label(request.agent)} is told.`,
          'For example: use the staging copy',
          gone,
        );
        if (reason === undefined) break;
        await board.deny(request, reason);
        return `${request.agent} was denied`;
      }
    }
    if (gone.isCancellationRequested) return undefined;
  }
}

function form(request: RequestView, scopes: string[], roots: string[], seconds: number): (Row<Step> | Heading)[] {
  const now = Date.now();
  const risky = scopes.filter(isRisky);
  const fresh = scopes.filter((scope) => request.newScopes.includes(scope));
  const less = (part: number, whole: number): string => (part < whole ? `${part} of ${whole}` : `all ${whole}`);
  const rows: (Row<Step> | Heading)[] = [
    {
      label: cut(`“${label(request.reason)}”`, ROW),
      icon: 'comment',
      detail: `Asked ${ago(request.createdAt, now)} through ${label(request.asker)}, expires in ${remaining(request.expiresAt, now)}. Enter shows all of it.`,
      value: 'look',
    },
    { heading: 'Wants to' },
    {
      label: cut(riskyFirst(scopes).map(scopeInShort).join(', ') || 'nothing', ROW),
      icon: 'key',
      description: `${less(scopes.length, request.scopes.length)} · change…`,
      ...(fresh.length > 0 && {
        detail: cut(`New for this agent: ${riskyFirst(fresh).map(scopeInShort).join(', ')}`, ROW),
      }),
      value: 'scopes',
    },
  ];
  if (risky.length > 0) {
    rows.push({ label: cut(`It can ${risky.map(scopeInShort).join(', ')}`, ROW), icon: 'warning', value: 'scopes' });
  }
  rows.push({ heading: 'Where' });
  for (const root of roots.slice(0, 3)) {
    const isNew = request.newRoots.includes(root) ? 'new for this agent' : '';
    const more = request.roots.length > 1 ? `${less(roots.length, request.roots.length)} · change…` : '';
    const description = [isNew, more].filter(Boolean).join(' · ');
    const row: Row<Step> = { label: cut(label(root), ROW), icon: 'folder', ...(description && { description }) };
    rows.push(request.roots.length > 1 ? { ...row, value: 'roots' } : row);
  }
  if (roots.length > 3) rows.push({ label: `and ${roots.length - 3} more`, icon: 'folder', value: 'roots' });
  rows.push(
    { heading: 'How long' },
    {
      label: span(seconds),
      icon: 'clock',
      description: `${seconds === request.seconds ? 'as asked' : 'less than asked'} · change…`,
      value: 'time',
    },
    { heading: 'Your decision' },
  );
  if (scopes.length > 0 && roots.length > 0) {
    const some = scopes.length < request.scopes.length || roots.length < request.roots.length;
    rows.push(
      { label: some ? 'Allow this much' : 'Allow', icon: 'check', value: 'allow', weighs: true },
      {
        label: 'Allow, and confirm each change',
        icon: 'checklist',
        description: 'you see every change before it is made',
        value: 'watch',
        weighs: true,
      },
    );
  }
  rows.push(
    { label: 'Deny', icon: 'circle-slash', value: 'deny', weighs: true },
    { label: 'Deny, and say why…', icon: 'comment-discussion', value: 'deny why' },
  );
  return rows;
}

async function chooseScopes(
  request: RequestView,
  chosen: string[],
  gone: vscode.CancellationToken,
): Promise<string[] | undefined> {
  const rows = riskyFirst(request.scopes).map((scope): Row<string> => {
    const marks = [isRisky(scope) ? 'can run or delete' : '', request.newScopes.includes(scope) ? 'new' : ''].filter(
      Boolean,
    );
    return { label: scopeInWords(scope), description: [scope, ...marks].join(' · '), value: scope };
  });
  const title = `What may ${label(request.agent)} do?`;
  return askWhich(
    { title, hint: 'Click or Space takes one away; Enter goes on', rows },
    (one) => chosen.includes(one),
    gone,
  );
}

async function chooseRoots(
  request: RequestView,
  chosen: string[],
  gone: vscode.CancellationToken,
): Promise<string[] | undefined> {
  const rows = request.roots.map((root): Row<string> => {
    return { label: label(root), value: root, ...(request.newRoots.includes(root) && { description: 'new' }) };
  });
  const title = `Where may ${label(request.agent)} work?`;
  return askWhich(
    { title, hint: 'Click or Space takes one away; Enter goes on', rows },
    (one) => chosen.includes(one),
    gone,
  );
}

async function chooseTime(request: RequestView, gone: vscode.CancellationToken): Promise<number | undefined> {
  const times = [...TIMES_S.filter((time) => time < request.seconds), request.seconds];
  const rows = times.map((time): Row<number> => {
    return { label: span(time), value: time, ...(time === request.seconds && { description: 'as asked' }) };
  });
  return ask({ title: 'For how long?', hint: 'It ends by itself; you can end it before', rows }, gone);
}

function inFull(request: RequestView): string {
  const scopes = riskyFirst(request.scopes).map((scope) => {
    const marks = [isRisky(scope) ? 'can run or delete' : '', request.newScopes.includes(scope) ? 'NEW' : ''].filter(
      Boolean,
    );
    return `  ${scopeInWords(scope)}  (${[scope, ...marks].join(', ')})`;
  });
  const roots = request.roots.map((root) => `  ${label(root)}${request.newRoots.includes(root) ? '  (NEW)' : ''}`);
  return [
    `${label(request.agent)} asks for access, through ${label(request.asker)}.`,
    '',
    'Why, in its own words:',
    visibleLines(request.reason).replace(/^/gm, '  '),
    '',
    `It wants to (${count(request.scopes.length, 'scope')}):`,
    ...scopes,
    '',
    'In:',
    ...roots,
    '',
    `For ${span(request.seconds)}.`,
    '',
    'To decide: the button at the top right of this editor, or Prism in the status bar.',
    '',
  ].join('\n');
}
