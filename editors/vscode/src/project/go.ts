// Go: `go test -json` tells of each test as it ends; the compiler and `vet` write lines.

import { placedLine, type Findings, type Outcome, type Reader } from './findings';

interface Event {
  Action?: string;
  Package?: string;
  Test?: string;
  Output?: string;
  Elapsed?: number;
}

/** Running tests whose words are kept, and letters of each. What is beyond is dropped. */
const MAX_RUNNING = 1000;
const MAX_WORDS = 8 << 10;

const OUTCOMES: Record<string, Outcome> = { pass: 'passed', fail: 'failed', skip: 'ignored' };

export class Go implements Reader {
  /** What running tests have printed so far. */
  private readonly words = new Map<string, string>();

  line(line: string, found: Findings): void {
    const event = line.startsWith('{') ? parsed(line) : undefined;
    if (event === undefined) return compiled(line, found);
    // What a package says by itself: that it does not compile, say.
    if (event.Action === 'build-output' || event.Test === undefined) {
      return compiled((event.Output ?? '').trimEnd(), found);
    }
    this.test(event, event.Test, found);
  }

  private test(event: Event, test: string, found: Findings): void {
    const name = `${event.Package ?? ''}.${test}`;
    if (event.Action === 'run') found.expected += 1;
    if (event.Action === 'output') this.output(name, event.Output ?? '');
    const outcome = OUTCOMES[event.Action ?? ''];
    if (outcome === undefined) return;
    const words = (this.words.get(name) ?? '').trim();
    this.words.delete(name);
    const message = outcome !== 'passed' && words !== '' ? words : undefined;
    const places = message?.split('\n').map((line) => placedLine(line.trim())?.path);
    const durationMs = event.Elapsed === undefined ? undefined : Math.round(event.Elapsed * 1000);
    found.case({ name, outcome, message, path: places?.find((path) => path !== undefined), durationMs });
  }

  private output(name: string, output: string): void {
    const words = this.words.get(name);
    if (words === undefined && this.words.size >= MAX_RUNNING) return;
    // `=== RUN   TestA`, `--- FAIL: TestA (0.00s)`: what is known already.
    if (/^\s*(=== |--- (PASS|FAIL|SKIP))/.test(output)) return;
    if ((words ?? '').length + output.length < MAX_WORDS) this.words.set(name, (words ?? '') + output);
  }
}

function parsed(line: string): Event | undefined {
  try {
    return JSON.parse(line) as Event;
  } catch {
    return undefined;
  }
}

/** `./a.go:3:2: undefined: x`, also behind `vet: `. */
function compiled(line: string, found: Findings): void {
  const placed = placedLine(line.replace(/^vet: /, ''));
  if (placed === undefined || !placed.path.endsWith('.go')) return;
  found.diagnostic({ path: placed.path, start: placed.start, message: placed.rest, source: 'go' });
}
