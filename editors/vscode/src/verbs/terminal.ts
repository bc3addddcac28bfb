// The verbs of terminals: `open_terminal`, `get_output`, `send_input`.

import * as vscode from 'vscode';

import { FENCE } from '../command/fence';
import { additions, folder, line, refuseLong, words } from '../command/words';
import { Refusal } from '../refusal';
import type { Call, Verb } from '../verbs';
import type { Args } from '../args';
import { startChild, type Wanted } from '../terminal/child';
import { signalForeground, signalNamed, type Program, type Size } from '../terminal/program';
import { draw } from '../terminal/drawing';
import { Screen } from '../terminal/screen';
import { startShell } from '../terminal/shell';
import { terminals, type Terminal } from '../terminal/terminals';

/** Bytes of an answer, if nothing else is said, and at most. */
const USUAL_OUTPUT = 64 << 10;
const MOST_OUTPUT = 1 << 20;

/** How long an answer may wait for more output. */
const LONGEST_WAIT = 60_000;

/** Bytes of one piece of input. */
const MAX_INPUT = 64 << 10;

const MOST_ROWS = 500;
const MOST_COLS = 1000;
const USUAL_SIZE: Size = { rows: 24, cols: 80 };

/** Letters of a command in the name of its terminal. */
const MAX_NAME = 60;

/** How long the end of a terminal is waited for. */
const ENDING = 5_000;

export const terminal: Record<string, Verb> = { open_terminal, get_output, send_input };

async function open_terminal(call: Call): Promise<object> {
  const { args, desk, session } = call;
  const given = args.take('command');
  const run = given === undefined ? [vscode.env.shell || '/bin/sh'] : words(given);
  const env = additions(args.take('env'));
  const size = sizeOf(args);
  const wanted = args.maybeText('cwd');
  args.done();
  refuseLong(run, env);
  const cwd = await folder(desk, wanted);
  const start = { words: run, cwd, env, size: size ?? USUAL_SIZE };
  const opened = await terminals.open({ session, line: line(run), cwd }, async (terminal) => {
    // A shell of the editor's own tells of each command, but has the size of its panel.
    const shell = given === undefined && size === undefined ? await startShell(start, terminal) : undefined;
    return shell ?? seenChild(start, terminal);
  });
  // Who asked has gone, and would never learn its name.
  if (call.stop.isCancellationRequested) terminals.forget(opened);
  return { terminal: opened.name, pid: opened.pid, is_tty: opened.isTty, fence: FENCE };
}

/** A child of ours, with a screen where the person sees it. */
async function seenChild(wanted: Wanted, terminal: Terminal): Promise<Program> {
  const { ears, history, about } = terminal;
  let screen: Screen | undefined;
  const program = await startChild(wanted, {
    executed: ears.executed,
    printed(bytes) {
      ears.printed(bytes);
      screen?.print(bytes);
    },
    ended(status) {
      ears.ended(status);
      screen?.print(Buffer.from(`\r\n\x1b[2m[ended, exit code ${status.exitCode ?? 'none'}]\x1b[0m\r\n`));
    },
  });
  const { isTty, type: typed, end: closed } = program;
  const hands = { isPlain: !isTty, printed: () => history.bytes(), typed, closed };
  screen = new Screen(hands, wanted.size);
  const name = `Prism: ${about.line.slice(0, MAX_NAME)}`;
  // It is there to be looked at; nobody is made to.
  const shown = vscode.window.createTerminal({
    name,
    pty: screen,
    iconPath: new vscode.ThemeIcon('robot'),
    isTransient: true,
  });
  terminal.whenLeft(() => shown.dispose());
  const { resize } = program;
  return Object.assign(program, {
    async resize(size: Size) {
      await resize(size);
      screen.resize(size);
    },
  });
}

async function get_output(call: Call): Promise<object> {
  const { args, session, stop } = call;
  const name = args.maybeText('terminal');
  const after = args.number('after', 0, Number.MAX_SAFE_INTEGER);
  const limit = args.number('limit', 1, MOST_OUTPUT) ?? USUAL_OUTPUT;
  const wait = args.number('wait_ms', 0, LONGEST_WAIT) ?? 0;
  const wantsScreen = args.flag('screen');
  args.done();
  if (name === undefined) return { terminals: terminals.of(session).map((terminal) => terminal.listed()) };
  const found = terminals.named(name, session);
  const from = after ?? found.history.end;
  const until = Date.now() + wait;
  const isStill = () => found.status === undefined && found.history.end <= from;
  while (isStill() && Date.now() < until && !stop.isCancellationRequested) {
    await found.change(until - Date.now());
  }
  const told = found.read(after, limit);
  return wantsScreen ? { ...told, screen: screenOf(found) } : told;
}

function screenOf(found: Terminal): object {
  const { size } = found;
  if (size !== undefined) return draw(size, found.history.bytes());
  const why = 'of a shell of the editor itself only the output of commands is known; open it with `rows` and `cols`';
  throw new Refusal('unsupported', why);
}

async function send_input(call: Call): Promise<object> {
  const { args, session } = call;
  const name = args.text('terminal');
  const input = args.maybeText('input');
  const size = sizeOf(args);
  const signal = args.maybeText('signal');
  const isClose = args.flag('close');
  args.done();
  const found = terminals.named(name, session);
  const wishes = [input !== undefined, size !== undefined, signal !== undefined, isClose].filter(Boolean);
  if (wishes.length !== 1) {
    const needed = 'one of `input`, `rows` with `cols`, `signal` or `close` is needed, and only one';
    throw new Refusal('bad_arguments', needed);
  }
  if (isClose) {
    await found.end(ENDING);
    terminals.forget(found);
    return { terminal: name, bytes: 0, exit_code: found.status?.exitCode ?? null };
  }
  const program = found.running();
  if (size !== undefined) await program.resize(size);
  if (signal !== undefined) signalForeground(program.pid, signalNamed(signal));
  const bytes = Buffer.byteLength(input ?? '');
  if (bytes > MAX_INPUT) {
    throw new Refusal('too_large', `${bytes} bytes of input; at most ${MAX_INPUT} are allowed at once`);
  }
  if (input !== undefined) program.type(input);
  return { terminal: name, bytes };
}

function sizeOf(args: Args): Size | undefined {
  const rows = args.number('rows', 1, MOST_ROWS);
  const cols = args.number('cols', 1, MOST_COLS);
  if (rows === undefined && cols === undefined) return undefined;
  if (rows === undefined || cols === undefined) throw new Refusal('bad_arguments', '`rows` and `cols` go together');
  return { rows, cols };
}
