// What runs in a terminal, and what can be done to it. There are two: a child at a pseudoterminal (`child.ts`) and a shell of the
// editor's own (`shell.ts`).

import { execFile } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

import { killGroup } from '../command/child';
import { Refusal } from '../refusal';

export interface Size {
  readonly rows: number;
  readonly cols: number;
}

export interface Status {
  readonly exitCode: number | null;
  readonly signal: number | null;
}

/** Where a program tells what happens. */
export interface Ears {
  printed(bytes: Buffer): void;
  /** A command has ended in a shell that tells of each. */
  executed(command: string, exitCode: number | null): void;
  /** Once. */
  ended(status: Status): void;
}

export interface Program {
  readonly pid: number;
  /** Whether it has a terminal, or only pipes as there was none to be had. */
  readonly isTty: boolean;
  /** `undefined`: as large as its panel. */
  readonly size?: Size;
  type(input: string): void;
  resize(size: Size): Promise<void>;
  /** Ends all that runs there; `ended` is told when it has. */
  end(): void;
}

const SIGNALS = ['INT', 'TERM', 'KILL', 'HUP', 'QUIT', 'TSTP', 'CONT', 'USR1', 'USR2'];

export function signalNamed(name: string): NodeJS.Signals {
  const bare = name.replace(/^SIG/, '');
  if (SIGNALS.includes(bare)) return `SIG${bare}` as NodeJS.Signals;
  throw new Refusal('bad_arguments', `${JSON.stringify(name)} is no signal; there are ${SIGNALS.join(', ')}`);
}

/** Sends a signal to what is in the foreground of the terminal that a session's leader has. */
export function signalForeground(leader: number, signal: NodeJS.Signals): void {
  const foreground = about(leader)?.foreground ?? leader;
  killGroup(foreground > 0 ? foreground : leader, signal);
}

/** Kills a session's leader and all groups of its session: a shell gives each job one of its own. */
export function killSession(leader: number): void {
  const groups = new Set([leader]);
  for (const name of listed()) {
    const found = about(Number(name));
    if (found?.session === leader) groups.add(found.group);
  }
  groups.forEach((group) => killGroup(group, 'SIGKILL'));
}

/** Sets the size of a terminal by the name of its device. Whoever runs there is told by the kernel. */
export function setSize(device: string, { rows, cols }: Size): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile('stty', ['-F', device, 'rows', `${rows}`, 'cols', `${cols}`], { timeout: 5_000 }, (error) => {
      if (error) reject(new Refusal('failed', `cannot resize the terminal: ${error.message}`));
      else resolve();
    });
  });
}

function listed(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    // A system without it: the leader's own group is all that is known.
    return [];
  }
}

function about(pid: number): { group: number; session: number; foreground: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name stands in brackets, and may hold anything.
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [, , group = 0, session = 0, , foreground = 0] = fields;
    return { group, session, foreground };
  } catch {
    return undefined;
  }
}
