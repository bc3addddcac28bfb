// One step of an agent's waits for the person's word. It is shown exactly as it would be done, and the word is about that.

import * as vscode from 'vscode';
import type { Board } from './board';
import { underQuestion, type Shelf } from './diff';
import { ask, askText, type Heading, type Row } from './pick';
import { number, object, text, texts, type ConfirmationView, type Json } from './views';
import { cut, label, left, span, visibleLines } from './words';

/** What fits into a row. Whatever is longer is opened in an editor before the question is asked. */
const ROW = 96;

type Step = 'look' | 'allow' | 'deny' | 'deny why' | 'console';

/** Asks until there is a decision, as `askAboutRequest` does. */
export async function askAboutConfirmation(
  view: ConfirmationView,
  board: Board,
  shelf: Shelf,
  gone: vscode.CancellationToken,
): Promise<string | undefined> {
  const step = picture(view);
  const look = (): Promise<void> => show(view, step, shelf);
  const decide = async (allows: boolean, reason?: string): Promise<string> => {
    await board.confirm(view, allows, reason);
    return allows ? `${view.agent} may ${step.title}` : `${view.agent} was denied`;
  };
  if (step.isLong) await look();
  for (;;) {
    const title = `${label(view.agent)} wants to ${step.title}`;
    const hint = 'Nothing happens until you decide. Esc puts it aside.';
    switch (await ask<Step>({ title, hint, rows: form(view, step) }, gone)) {
      case undefined:
        return undefined;
      case 'look':
        await look();
        switch (await shelf.look(view.id, view.isCut ? 'request' : 'confirmation', gone)) {
          case undefined:
            return undefined;
          case 'allow':
            return decide(true);
          case 'deny':
            return decide(false);
          case 'ask':
        }
        break;
      case 'console':
        await vscode.commands.executeCommand('prism.openConsole');
        return undefined;
      case 'allow':
        return decide(true);
      case 'deny':
        return decide(false);
      case 'deny why': {
        const reason = await askText(`Why not? ${label(view.agent)} is told.`, 'For example: keep that file', gone);
        if (reason === undefined) break;
        return decide(false, reason);
      }
    }
    if (gone.isCancellationRequested) return undefined;
  }
}

/** In one line, for lists. */
export function inShort(view: ConfirmationView): string {
  const step = picture(view);
  return `${step.title}: ${step.line}`;
}

interface Picture {
  readonly title: string;
  readonly icon: string;
  /** What it is, in one line. */
  readonly line: string;
  readonly facts: string;
  /** All of it. */
  readonly full: string;
  /** The line is not all of it. */
  readonly isLong: boolean;
}

function picture(view: ConfirmationView): Picture {
  const { shown } = view;
  switch (view.what) {
    case 'command': {
      const command = commandOf(shown['command']);
      const environment = Object.entries(object(shown['env'])).map(([name, value]) => `${name}=${text(value)}`);
      const facts = [
        `in ${text(shown['cwd'])}`,
        typeof shown['command'] === 'string' ? 'run by sh -c' : 'run without a shell',
        ...(environment.length > 0 ? [`with ${environment.join(' ')}`] : []),
        `at most ${span(Math.ceil(number(shown['timeout_ms']) / 1000))}`,
      ];
      return made('run a command', 'terminal', command, facts);
    }
    case 'diff': {
      const unified = text(shown['unified']).split('\n');
      const added = unified.filter((line) => line.startsWith('+') && !line.startsWith('+++')).length;
      const removed = unified.filter((line) => line.startsWith('-') && !line.startsWith('---')).length;
      const isNew = shown['old_text_digest'] === null || shown['old_text_digest'] === undefined;
      const facts = [isNew ? 'a new file' : 'a difference', `+${added} −${removed} lines`];
      return { ...made(isNew ? 'create a file' : 'change a file', 'diff', text(shown['path']), facts), isLong: true };
    }
    case 'delete':
      return made('delete', 'trash', text(shown['path']), [
        `a ${text(shown['what'])} of ${number(shown['bytes'])} bytes`,
      ]);
    case 'rename': {
      const facts = shown['replaces'] === true ? ['IT REPLACES WHAT IS THERE NOW'] : [];
      return made('rename', 'arrow-right', `${text(shown['from'])} → ${text(shown['to'])}`, facts);
    }
    case 'tool':
      return {
        ...made('call a tool', 'tools', toolOf(shown), [`rule ${text(shown['rule'])}`]),
        full: pretty(shown),
        isLong: true,
      };
    case 'definition':
      return { ...made('use a tool that has changed', 'tools', toolOf(shown), []), full: pretty(shown), isLong: true };
    case 'plain': {
      const lines = texts(shown['lines']);
      const whole = made('do this', 'play', text(shown['title']), lines.slice(0, 1));
      return {
        ...whole,
        full: [text(shown['title']), '', ...lines].join('\n'),
        isLong: whole.isLong || lines.length > 1,
      };
    }
    default:
      return { ...made('do this', 'play', 'see the editor below', []), full: pretty(shown), isLong: true };
  }
}

function made(title: string, icon: string, line: string, facts: string[]): Picture {
  const isLong = line.length > ROW || /[\r\n\t]/.test(line) || facts.join(' · ').length > ROW;
  return {
    title,
    icon,
    line: label(line),
    facts: label(facts.join(' · ')),
    full: [line, '', ...facts].join('\n'),
    isLong,
  };
}

function form(view: ConfirmationView, step: Picture): (Row<Step> | Heading)[] {
  const rows: (Row<Step> | Heading)[] = [
    {
      label: cut(step.line, ROW),
      icon: step.icon,
      detail: cut(step.facts, ROW) || 'Enter shows it in an editor',
      description: step.isLong ? 'Enter: look at it without this question' : '',
      value: 'look',
    },
    { heading: `Your decision · ${left(view.expiresAt, Date.now())}` },
  ];
  if (view.isCut) {
    rows.push({
      label: 'It is too long to be shown here: open the console',
      icon: 'link-external',
      description: 'it can be allowed where all of it is seen',
      value: 'console',
    });
  } else {
    // What a tool has become is taken for good, or not at all.
    rows.push({
      label: view.what === 'definition' ? 'Accept the change' : 'Allow once',
      icon: 'check',
      value: 'allow',
      weighs: true,
    });
  }
  rows.push(
    { label: 'Deny', icon: 'circle-slash', value: 'deny', weighs: true },
    { label: 'Deny, and say why…', icon: 'comment-discussion', value: 'deny why' },
  );
  return rows;
}

async function show(view: ConfirmationView, step: Picture, shelf: Shelf): Promise<void> {
  if (view.what === 'diff' && !view.isCut) {
    const { path, old_text_digest, unified } = view.shown;
    const about = { path: text(path), digest: text(old_text_digest), unified: text(unified), agent: view.agent };
    await shelf.showChange(about, view.id);
    return;
  }
  if (view.what === 'definition') {
    const [before, after] = [definition(view.shown['before']), definition(view.shown['after'])];
    if (before !== '' || after !== '') {
      await shelf.showTwo(
        `${toolOf(view.shown)}: what has changed`,
        { name: 'before.json', text: before },
        { name: 'after.json', text: after },
        view.id,
      );
      return;
    }
  }
  const extension = view.what === 'diff' || /^@@ -\d/m.test(step.full) ? 'diff' : 'txt';
  const body = view.what === 'diff' ? text(view.shown['unified']) : step.full;
  const head = [
    `${label(view.agent)} wants to ${step.title}. Nothing happens until you decide:`,
    'in the question, or by the buttons at the top right of this editor.',
    ...(view.isCut ? ['', 'THIS IS NOT ALL OF IT: it was too long.'] : []),
  ];
  await shelf.showText(`What ${view.agent} wants to do.${extension}`, underQuestion(head, visibleLines(body)), view.id);
}

/** As it would be typed: one text for a shell, or the words that are run without one. */
function commandOf(command: unknown): string {
  if (typeof command === 'string') return command;
  return texts(command)
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

function toolOf(shown: Json): string {
  return [text(shown['destination']), text(shown['tool'])].filter(Boolean).join(' · ');
}

function definition(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') return pretty(value);
  try {
    return pretty(JSON.parse(value));
  } catch {
    return value;
  }
}

function pretty(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
