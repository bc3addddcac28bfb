// Make, and what it mostly runs: compilers that write `file:line:column: error: …`.

import { isAbsolute } from 'node:path';

import { placedLine, severityOf, type Findings, type Reader } from './findings';

/** Folders within folders that make goes into. Deeper ones are not followed. */
const MAX_DEPTH = 64;

export class Make implements Reader {
  /** The folders that make has gone into: paths are relative to the last. */
  private readonly folders: string[] = [];

  line(line: string, found: Findings): void {
    if (line.startsWith('make')) return this.make(line, found);
    const placed = placedLine(line);
    const said = /^(fatal error|error|warning):\s*(.*)$/.exec(placed?.rest ?? '');
    if (placed === undefined || said === null) return;
    const [, severity = '', message = ''] = said;
    const folder = this.folders.at(-1);
    found.diagnostic({
      path: folder === undefined || isAbsolute(placed.path) ? placed.path : `${folder}/${placed.path}`,
      start: placed.start,
      severity: severityOf(severity),
      message: message.trim(),
      source: 'cc',
      // `-Wunused-variable` stands at the end, in brackets.
      code: / \[([^\]]*)\]$/.exec(message)?.[1],
    });
  }

  /** `make[1]: Entering directory '/p/sub'`, `make: *** [Makefile:3: all] Error 1` */
  private make(line: string, found: Findings): void {
    const said = line.slice(line.indexOf(': ') + 2);
    const folder = /^Entering directory '(.*)'$/.exec(said)?.[1];
    if (folder !== undefined && this.folders.length < MAX_DEPTH) this.folders.push(folder);
    if (said.startsWith('Leaving directory ')) this.folders.pop();
    // A rule that failed has said why before; what is wrong with the Makefile itself is said only here.
    const stop = /^\*\*\* (.*)$/.exec(said)?.[1];
    if (stop !== undefined && !/^\[.*\] Error /.test(stop)) found.diagnostic({ message: stop, source: 'make' });
  }
}
