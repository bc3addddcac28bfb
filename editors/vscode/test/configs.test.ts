import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { LogOutputChannel } from 'vscode';
import type { Board } from '../src/person/board';
import { Configs } from '../src/person/configs';
import type { Shelf } from '../src/person/diff';
import { readSnapshot } from '../src/person/views';
import { EventEmitter, window } from './vscode';

const UNIFIED = '--- /w/prism.toml\n+++ /w/prism.toml\n@@ -1 +1 @@\n-a\n+b\u202e\n';

function config(more: object = {}): object {
  const why = '/w/prism.toml was changed';
  return { path: '/w/prism.toml', why, fix: 'prism trust /w/prism.toml', unified: UNIFIED, ...more };
}

/** A window whose daemon says what the test has it say. */
class Desk {
  readonly shown: [name: string, text: string, about: string][] = [];
  closed: string[] = [];
  private readonly changed = new EventEmitter<void>();
  readonly board = { snapshot: readSnapshot({}), isTold: false, onChange: this.changed.event };
  private readonly shelf = {
    showText: async (...shown: [string, string, string]): Promise<void> => void this.shown.push(shown),
    close: async (about: string): Promise<void> => void this.closed.push(about),
  };
  readonly configs = new Configs(
    this.board as unknown as Board,
    this.shelf as unknown as Shelf,
    {} as LogOutputChannel,
  );

  /** Without a word there is no daemon. */
  async says(...configs: object[] | [undefined]): Promise<void> {
    const isTold = configs[0] !== undefined || configs.length === 0;
    Object.assign(this.board, { snapshot: readSnapshot(isTold ? { configs } : {}), isTold });
    this.changed.fire();
    await turn();
  }
}

/** Until what was begun has gone as far as it can. */
const turn = (): Promise<void> => new Promise((done) => setImmediate(done));
const titles = (): string[] => [...window.notifications].map(({ title }) => title);
const linked = (title: string, command: string): string => {
  const link = new RegExp(`\\(command:prism\\.${command}\\?([^)]+)\\)`).exec(title);
  return JSON.parse(decodeURIComponent(link?.[1] ?? ''))[0];
};

beforeEach(() => window.notifications.clear());

test('a config that waits is noticed once for each text, until it does not wait', async () => {
  const desk = new Desk();
  await desk.says(config());
  await desk.says(config());
  assert.equal(titles().length, 1);
  const why = 'A config waits for you to see it: /w/prism.toml was changed. ';
  assert.ok(titles()[0]?.startsWith(`${why}[Show the difference](`), titles()[0]);
  const first = linked(titles()[0] ?? '', 'showConfig');
  await desk.says(config({ unified: UNIFIED.replace('+b', '+c') }));
  assert.equal(titles().length, 1, 'another text takes its place');
  assert.notEqual(linked(titles()[0] ?? '', 'showConfig'), first);
  assert.deepEqual(desk.closed, [first]);
  await desk.says();
  assert.deepEqual([titles(), desk.closed.length], [[], 2]);
  await assert.rejects(desk.configs.show(first), /does not wait any more/);
});

test('its difference is shown with what to type, and the command is only typed', async () => {
  const desk = new Desk();
  await desk.says(config());
  const id = linked(titles()[0] ?? '', 'typeTrust');
  assert.equal(desk.configs.fix(id), 'prism trust /w/prism.toml');
  await desk.configs.show(id);
  const [name, text, about] = desk.shown[0] ?? [];
  assert.deepEqual([name, about], ['prism.toml.diff', id]);
  assert.ok(text?.includes('\nIn a terminal: prism trust /w/prism.toml\n') && text.includes('\n+b[U+202E]\n'), text);
});

test('what was put aside is not noticed again, also when the daemon comes back', async () => {
  const desk = new Desk();
  await desk.says(config(), config({ path: '/x', why: '/x does not count' }));
  [...window.notifications][0]?.aside.cancel();
  await turn();
  assert.equal(titles().length, 1);
  await desk.says(undefined);
  assert.deepEqual(titles(), [], 'nothing is known while the daemon is away');
  await desk.says(config(), config({ path: '/x', why: '/x does not count' }));
  assert.match(titles().join('\n'), /^A config waits for you to see it: \/x does not count\. [^\n]*$/);
});

test("a file's name is no link, and presses no key", async () => {
  const desk = new Desk();
  const name = '/w/[x](command:workbench.action.quit)$(check)';
  await desk.says(config({ path: name, why: `${name} does not count`, fix: "prism trust '/w/\u0003\rrm'" }));
  const [title = ''] = titles();
  const links = [...title.matchAll(/\]\(command:([a-zA-Z.]+)/g)].map((link) => link[1]);
  assert.deepEqual(links, ['prism.showConfig', 'prism.typeTrust']);
  assert.ok(!title.includes('$('), title);
  assert.throws(() => desk.configs.fix(linked(title, 'typeTrust')), /type it yourself/);
});
