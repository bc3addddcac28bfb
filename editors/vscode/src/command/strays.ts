// What a command has started may leave its process group, and even its session; but not its environment, which has a mark.

import { randomUUID } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';

const MARK = 'PRISM_RUN';

export interface Run {
  /** What is added to the environment of all that belongs to it. */
  readonly env: Record<string, string>;
  /** Kills what is left of it. Where there is no /proc nothing is found. */
  end(): Promise<void>;
}

export function beginRun(): Run {
  const mark = randomUUID();
  return { env: { [MARK]: mark }, end: () => endMarked(`${MARK}=${mark}\0`) };
}

async function endMarked(mark: string): Promise<void> {
  const names = await readdir('/proc').catch((): string[] => []);
  const ends = names
    .filter((name) => /^\d+$/.test(name))
    .map(async (name) => {
      const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
      if (`\0${environment}`.includes(`\0${mark}`)) kill(Number(name));
    });
  await Promise.all(ends);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
