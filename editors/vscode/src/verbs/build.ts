// `build_project` and `run_tests`: the tool that a project is made for, run to its end, and what it says.

import * as vscode from 'vscode';

import { attend } from '../command/child';
import { FENCE } from '../command/fence';
import type { Output } from '../command/output';
import { unsavedBeneath } from '../command/unsaved';
import { upwards } from '../command/upwards';
import { folder, line as lineOf } from '../command/words';
import { Findings } from '../project/findings';
import { showRun } from '../project/show';
import { showTests } from '../project/tests';
import { findProject, planOf, readerOf, toolNamed, type Goal } from '../project/tool';
import { Refusal, wrong } from '../refusal';
import type { Call, Verb } from '../verbs';

/** How long it may take, if nothing else is said, and at most. */
const USUAL_TIME = 300_000;
const LONGEST_TIME = 1_800_000;

/** Letters of the end of what a tool has printed that an answer has. */
const END = 16 << 10;

/** How often somebody who waits is told how far it is. */
const TELLING = 100;

/** Builds that run at the same time. One more is refused. */
const MAX_AT_ONCE = 4;
let running = 0;

export const build: Record<string, Verb> = {
  build_project: (call) => run(call, 'build'),
  run_tests: (call) => run(call, 'test'),
};

async function run(call: Call, goal: Goal): Promise<object> {
  const { args, desk } = call;
  const wanted = args.maybeText('cwd');
  const named = args.maybeText('tool');
  const partName = goal === 'build' ? 'target' : 'filter';
  const part = args.maybeText(partName);
  const patience = args.number('timeout_ms', 1, LONGEST_TIME) ?? USUAL_TIME;
  args.done();
  // It is a name for the tool, and must not become one of its options.
  if (part !== undefined && (part === '' || part.startsWith('-') || part.includes('\0'))) {
    throw wrong(`\`${partName}\` must be a name, and cannot begin with \`-\``);
  }
  const tool = named === undefined ? undefined : toolNamed(named);
  const project = findProject(upwards(call, await folder(desk, wanted)), tool);
  const plan = planOf(project, goal, part);
  if (running >= MAX_AT_ONCE) {
    throw new Refusal('rate_limited', 'too many builds run already; try again when one has ended', 5_000);
  }
  running += 1;
  try {
    return await done(call, goal, { ...plan, ...project, patience });
  } finally {
    running -= 1;
  }
}

type Run = ReturnType<typeof planOf> & ReturnType<typeof findProject> & { readonly patience: number };

async function done(call: Call, goal: Goal, { words, env, tool, folder: cwd, root, patience }: Run): Promise<object> {
  const { desk, session: by } = call;
  const command = lineOf(words);
  const tell = (event: string, data: object) => desk.voice.tell(event, cwd, { tool, by, ...data });
  const found = new Findings();
  const reader = readerOf(tool);
  // It ends with who waits for it, and when the person ends it.
  const stop = new vscode.CancellationTokenSource();
  const stopped = call.stop.onCancellationRequested(() => stop.cancel());
  const shown = showRun(`${goal} ${tool}`, command, () => stop.cancel());
  const unsaved = unsavedBeneath(cwd);
  let told = 0;
  let isOk = false;
  let exitCode: number | null = null;
  let hasStarted = false;
  try {
    const ended = await attend({ words, cwd, env, patience }, stop.token, {
      started() {
        hasStarted = true;
        if (goal === 'build') tell('build_started', { command });
        call.progress(command);
      },
      line(line) {
        shown.line(line);
        reader.line(line, found);
        if (Date.now() - told < TELLING) return;
        told = Date.now();
        say(call, goal, line, found);
      },
    });
    reader.end?.(found);
    exitCode = ended.exitCode;
    isOk = exitCode === 0;
    const base = { folder: cwd, root };
    if (goal === 'test') {
      tell('test_results', { is_ok: isOk, ...found.counts });
      showTests(`${tool} in ${cwd}`, found, base);
    }
    return {
      tool,
      command: words,
      cwd,
      is_ok: isOk,
      exit_code: exitCode,
      signal: ended.signal,
      timed_out: ended.timedOut,
      diagnostics: found.toldDiagnostics(base),
      errors: found.errors,
      warnings: found.warnings,
      is_complete: found.isComplete,
      stdout: endOf(ended.out),
      stderr: endOf(ended.err),
      duration_ms: ended.duration,
      fence: FENCE,
      unsaved,
      ...(goal === 'test' ? { tests: found.toldTests(base) } : {}),
    };
  } finally {
    stopped.dispose();
    stop.dispose();
    shown.end(exitCode);
    if (goal === 'build' && hasStarted) {
      tell('build_completed', { is_ok: isOk, errors: found.errors, warnings: found.warnings });
    }
  }
}

function say(call: Call, goal: Goal, line: string, found: Findings): void {
  const { ended, expected } = found;
  if (goal === 'test' && ended > 0) {
    call.progress(`${ended} tests have ended`, ended, expected >= ended ? expected : undefined);
  } else if (!line.startsWith('{') && line.trim() !== '') {
    call.progress(line.trim().slice(0, 200));
  }
}

/** The end of what was printed, without what is for machines and was read already. */
function endOf(output: Output): string {
  const lines = output
    .told()
    .text.split('\n')
    .filter((line) => !line.startsWith('{"'));
  if (lines.at(-1) === '') lines.pop();
  let letters = 0;
  let first = lines.length;
  while (first > 0) {
    letters += (lines[first - 1]?.length ?? 0) + 1;
    if (letters > END) break;
    first -= 1;
  }
  return (first > 0 ? '[…]\n' : '') + lines.slice(first).join('\n');
}
