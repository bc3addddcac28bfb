// A terminal with a program in it, as a person has it: what is on the screen, and what is typed. It is tmux's, with a server of
// its own, so that no tmux of the user's is touched and the end of one is the end of all that runs in it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const COLUMNS = 160;
const ROWS = 50;
const TMUX_MS = 10_000;
// How long what is typed may take to be seen, and to have an effect; OpenCode reads much before its first question.
const SEEN_MS = 20_000;
const SENT_MS = 60_000;
// How long before Enter is pressed again, by a person who sees that nothing happens.
const AGAIN_MS = 2_000;
const LOOK_MS = 25;

export function openTerminal(home, env, cwd, words) {
  const tmux = (...rest) => spawnSync('tmux', ['-S', join(home.path, 'tmux'), '-f', '/dev/null', ...rest], {
    env: { ...env, TERM: 'xterm-256color' }, encoding: 'utf8', timeout: TMUX_MS,
  });
  home.ends(() => tmux('kill-server'));
  const opened = tmux('new-session', '-d', '-s', 'agent', '-x', `${COLUMNS}`, '-y', `${ROWS}`, '-c', cwd, ...words);
  if (opened.status !== 0) throw new Error(`tmux: ${opened.stderr ?? opened.error}`);
  const pane = tmux('display-message', '-p', '-t', 'agent', '#{pane_id}').stdout.trim();
  const keys = (...rest) => tmux('send-keys', '-t', 'agent', ...rest);
  return {
    // What runs in it hears a hangup, as from a window that is closed.
    close: () => tmux('kill-server'),
    // By which others may type here, too.
    pane: { pane, socket: join(home.path, 'tmux') },
    screen: () => (tmux('capture-pane', '-p', '-t', 'agent').stdout ?? '').replace(/\s+$/, ''),
    press: (key) => keys(key),
    // A line is sent once it is on the screen: Codex takes an Enter that comes with the text for a part of the text.
    async type(line, sent) {
      keys('-l', line);
      await until(`"${line}" on the screen`, SEEN_MS, () => this.screen().includes(line));
      const deadline = Date.now() + SENT_MS;
      while (!sent()) {
        if (Date.now() > deadline) throw new Error(`"${line}" was typed, and nothing came of it`);
        keys('Enter');
        await until('it is sent', AGAIN_MS, sent).catch(() => {});
      }
    },
  };
}

// Looks until it is so, and returns what it found. A wait without an end is a test without one.
export async function until(what, limit, look) {
  const deadline = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited ${limit / 1000} s for: ${what}`);
    await sleep(LOOK_MS);
  }
}
