// The agents at a terminal: what each is started with, when it is ready for a person, and when it has nothing to do. An agent
// that is not in `-p` or `exec` asks its person a few things first; what they would have answered is written before.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AGENTS } from './agents.mjs';
import { BIN, freePort } from './home.mjs';
import { until } from './terminal.mjs';

// OpenCode takes half a minute for its first start.
const UP_MS = 60_000;
// A server that starts may leave a question without an answer.
const ASK_MS = 3_000;
const PASSWORD = 'no-secret';
// What an agent shows of a session that it goes on with: what its person said in it.
const SAID = 'Join the mesh.';

// `prepare` writes what the agent's owner has before Prism is installed. `sit` starts what the agent needs beside it, and
// returns the `words` to start it with; `ready` is true when it takes a prompt; `idle`, when it has answered the last one;
// `contact` is what it tells Prism of how it can be reached, from the model's request. Where the bell goes to another program than
// the one at the terminal, `alone` has that one run without the agent's session, or not at all, and returns the words that bring the session
// back; `isBack` is true when they have.
export const SEATS = {
  'claude-code': {
    surface: 'claude_code',
    prepare({ home, work }) {
      put(join(home, AGENTS['claude-code'].config), JSON.stringify({
        hasCompletedOnboarding: true,
        theme: 'dark',
        customApiKeyResponses: { approved: ['no-key'], rejected: [] },
        projects: { [work]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
      }));
      put(join(home, '.claude/settings.json'), JSON.stringify({ permissions: { allow: ['mcp__prism'] }, enableAllProjectMcpServers: true }));
    },
    // A call is in the background as soon as it may be, so that no scenario lasts two minutes.
    env: { CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS: '500' },
    async sit() {
      return { words: [join(BIN, 'claude'), '--permission-mode', 'default'] };
    },
    ready: (screen) => /^❯/m.test(screen),
    // Claude Code tells other programs what it does, in a file for each process.
    idle({ home }) {
      const folder = join(home, '.claude/sessions');
      const files = existsSync(folder) ? readdirSync(folder) : [];
      return files.some((file) => /"status":\s*"idle"/.test(readFileSync(join(folder, file), 'utf8')));
    },
  },
  codex: {
    surface: 'codex',
    prepare({ home, work, model }) {
      put(join(home, AGENTS.codex.config), `check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
${AGENTS.codex.own(model)}
[projects."${work}"]
trust_level = "trusted"
`);
    },
    env: {},
    // With an app-server the terminal is one of its clients, and Prism may be another. Codex would start one of its own for all
    // its terminals, which outlives them and looks for updates on the internet: here it is ours, or none.
    async sit({ home, env, work, served }) {
      // As npm has it, it is Node's program to whoever looks at the terminal.
      if (!served) return { words: [join(BIN, 'codex'), '--no-daemon'], command: 'node' };
      const address = served === 'unix' ? `unix://${join(home.path, 'codex.sock')}` : 'ws://127.0.0.1:0';
      const socket = join(home.path, 'codex.sock');
      const listen = async () => {
        rmSync(socket, { force: true });
        const server = spawn(join(BIN, 'codex'), ['app-server', '--listen', address], { env, cwd: work, stdio: ['ignore', 'ignore', 'pipe'] });
        let stderr = '';
        server.stderr.on('data', (chunk) => { stderr += chunk; });
        home.ends(() => server.kill());
        const url = await until('the app-server listens', UP_MS, () => (served === 'unix'
          ? existsSync(socket) && address
          : /listening on: (ws:\S+)/.exec(stderr)?.[1]));
        return { server, url };
      };
      const { server, url } = await listen();
      let thread;
      // The model is asked with the thread's id, and a tool call has it in its `_meta`.
      const contact = (text) => {
        thread = JSON.parse(text).prompt_cache_key;
        return { codex_app_server: { url, thread } };
      };
      const alone = async (terminal) => {
        terminal.close();
        server.kill();
        await once(server, 'exit');
        await listen();
        return [join(BIN, 'codex'), 'resume', '--remote', url, thread];
      };
      return { words: [join(BIN, 'codex'), '--remote', url], contact, alone };
    },
    // It asks about hooks that it has not seen before, once its person sees the prompt.
    async greet(terminal, hooks) {
      if (!hooks) return;
      await until('Codex asks about the hooks', UP_MS, () => terminal.screen().includes('Trust all and continue'));
      // A key that comes before it listens is lost.
      await until('the answer is chosen', UP_MS, () => {
        if (terminal.screen().includes('› 2.')) return true;
        terminal.press('2');
        return false;
      });
      terminal.press('Enter');
      await until('Codex asks no more', UP_MS, () => !terminal.screen().includes('Trust all and continue'));
    },
    ready: (screen) => /^› /m.test(screen) && !/^ *loading/m.test(screen),
    isBack: ({ screen }) => screen().includes(SAID) && /^› /m.test(screen()),
    idle: ({ screen }) => /^• ok/m.test(screen()) && !/esc to interrupt/.test(screen()),
  },
  opencode: {
    surface: 'opencode',
    prepare({ home, model }) {
      put(join(home, AGENTS.opencode.config), AGENTS.opencode.own(model));
    },
    env: { OPENCODE_SERVER_PASSWORD: PASSWORD },
    // The terminal has a server in it, for whoever knows the port and the password.
    async sit({ home, served }) {
      const port = await freePort();
      const password_file = join(home.path, 'opencode-password');
      put(password_file, PASSWORD);
      const ask = async (path) => {
        const headers = { Authorization: `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString('base64')}` };
        const signal = AbortSignal.timeout(ASK_MS);
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal }).catch(() => undefined);
        return answer?.ok ? answer.json() : undefined;
      };
      const words = [join(BIN, 'opencode'), '--port', `${port}`];
      let session;
      const contact = async () => {
        [session] = await until('OpenCode names its session', UP_MS, () => ask('/session'));
        return { opencode: { url: `http://127.0.0.1:${port}`, session: session.id, password_file } };
      };
      const alone = async (terminal) => {
        terminal.close();
        await until('OpenCode is gone', UP_MS, async () => (await ask('/session')) === undefined);
        return [...words, '--session', session.id];
      };
      return { words, ask, contact: served ? contact : undefined, alone };
    },
    ready: (screen) => screen.includes('Ask anything'),
    isBack: async ({ screen, sat }) => screen().includes(SAID) && (await sat.ask('/session')) !== undefined,
    idle: async ({ sat }) => isEmpty(await sat.ask('/session/status')),
  },
};

const isEmpty = (value) => value !== undefined && Object.keys(value).length === 0;

function put(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode: 0o600 });
}
