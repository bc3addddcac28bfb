// A window of a real VS Code (code-server and Chromium without a screen), and a person's hands in it.
//   node window.mjs --code PROGRAM --chromium FILE --home PRISM_HOME [--extension FOLDER] [--grace SECONDS] FOLDER
// As a program it is told what to do by JSON lines on stdin, e.g. {"do":"type","text":"hello"}, and answers each with one on stdout:
// {"ok":true,…} or {"ok":false,"error":"…"}. The first line that it writes is {"ok":true,"did":"open"}. When stdin ends, all ends.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];
const SIZE = { width: 1280, height: 860 };

// A quiet editor: nothing opens, asks, fetches or saves by itself.
const SETTINGS = {
  'workbench.startupEditor': 'none', 'workbench.tips.enabled': false, 'workbench.welcomePage.walkthroughs.openOnInstall': false,
  'workbench.enableExperiments': false, 'workbench.settings.enableNaturalLanguageSearch': false, 'workbench.reduceMotion': 'on',
  'workbench.secondarySideBar.defaultVisibility': 'hidden', 'workbench.colorTheme': 'Default Light Modern',
  'extensions.autoUpdate': false, 'extensions.autoCheckUpdates': false, 'extensions.ignoreRecommendations': true,
  'update.mode': 'none', 'update.showReleaseNotes': false, 'telemetry.telemetryLevel': 'off', 'telemetry.feedback.enabled': false,
  'git.autofetch': false, 'git.openRepositoryInParentFolders': 'never', 'git.confirmSync': false,
  'chat.disableAIFeatures': true, 'chat.commandCenter.enabled': false, 'files.autoSave': 'off', 'files.simpleDialog.enable': true,
  'security.workspace.trust.enabled': false, 'typescript.disableAutomaticTypeAcquisition': true, 'npm.fetchOnlinePackageInfo': false,
  // While a project loads, VS Code has a second TypeScript server rename, which knows open files only.
  'typescript.tsserver.useSyntaxServer': 'never', 'js/ts.tsserver.useSyntaxServer': 'never',
  'json.schemaDownload.enable': false, 'terminal.integrated.gpuAcceleration': 'off', 'terminal.integrated.showExitAlert': false, 'window.confirmBeforeClose': 'never',
  // What a person types is what is there afterwards.
  'editor.cursorBlinking': 'solid', 'editor.autoClosingBrackets': 'never', 'editor.autoClosingQuotes': 'never', 'editor.autoIndent': 'none',
  'editor.acceptSuggestionOnEnter': 'off', 'editor.acceptSuggestionOnCommitCharacter': false, 'editor.quickSuggestions': { other: 'off' },
};

// Ends its group when whoever started it is gone, however that went: their end of its stdin closes.
const WATCHED = `trap '' TERM HUP INT; (trap - TERM HUP INT; exec "$@") & read -r _; kill -s TERM -- -$$; sleep 0.5; kill -s KILL -- -$$`;

export class Window {
  // options: code, chromium, home; extension (a folder), grace (seconds that the host outlives a lost window; 1.99 waits three hours),
  // settings (more of them), env, size (of the window, { width, height })
  static async open(folder, options) {
    const self = new Window();
    Object.assign(self, { folder, options, complaints: [] });
    self.work = mkdtempSync(`${tmpdir()}/window-`);
    try {
      self.furnish();
      await self.serve();
      await self.look();
    } catch (error) {
      const log = self.log?.slice(-1500) ?? '';
      await self.end();
      throw new Error(`${error.message}\n${log}`);
    }
    return self;
  }

  furnish() {
    mkdirSync(`${this.work}/user/User`, { recursive: true });
    mkdirSync(`${this.work}/extensions`);
    this.settings = { ...SETTINGS, ...this.options.settings };
    this.settle();
    const from = this.options.extension;
    if (!from) return;
    const { publisher, name, version } = JSON.parse(readFileSync(`${from}/package.json`, 'utf8'));
    const needless = /(^|\/)(node_modules|src|test)(\/|$)/;
    cpSync(from, `${this.work}/extensions/${publisher}.${name}-${version}`,
      { recursive: true, filter: (path) => !needless.test(path.slice(from.length)) });
  }

  settle(more = {}) {
    Object.assign(this.settings, more);
    writeFileSync(`${this.work}/user/User/settings.json`, JSON.stringify(this.settings, null, 1));
  }

  async serve() {
    const { code, home, grace = 1, env } = this.options;
    const words = [code, '--bind-addr', '127.0.0.1:0', '--auth', 'none', '--disable-telemetry', '--disable-update-check',
      '--disable-workspace-trust', '--disable-getting-started-override', '--config', `${this.work}/config.yaml`,
      '--user-data-dir', `${this.work}/user`, '--extensions-dir', `${this.work}/extensions`];
    this.server = spawn('sh', ['-c', WATCHED, 'sh', ...words], {
      detached: true, cwd: this.work, stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, XDG_DATA_HOME: this.work, XDG_CONFIG_HOME: this.work, XDG_CACHE_HOME: this.work, PRISM_HOME: home,
        CODE_SERVER_RECONNECTION_GRACE_TIME: String(grace), ...env },
    });
    this.server.stdin.on('error', () => {});
    this.gone = new Promise((done) => this.server.once('exit', done));
    this.log = '';
    this.url = await within(30_000, 'code-server does not listen', new Promise((done) => {
      for (const stream of [this.server.stdout, this.server.stderr]) {
        stream.on('data', (text) => {
          this.log = (this.log + text).slice(-20_000);
          const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(this.log);
          if (found) done(found[1]);
        });
      }
    }));
  }

  // Opens the window. A second time after close or vanish: the person is back.
  async look() {
    this.browserServer = await chromium.launchServer({ executablePath: this.options.chromium, args: FLAGS });
    this.browser = await chromium.connect(this.browserServer.wsEndpoint());
    this.context = await this.browser.newContext({ viewport: this.options.size ?? SIZE, reducedMotion: 'reduce' });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(15_000);
    this.page.on('pageerror', (error) => this.complaints.push(error.message));
    await this.page.goto(`${this.url}/?folder=${encodeURIComponent(this.folder)}`);
    await this.page.waitForSelector('.monaco-workbench .statusbar-item', { timeout: 60_000 });
  }

  async field() {
    const field = this.page.locator('.quick-input-box input').first();
    await field.waitFor();
    return field;
  }

  // Runs a command of the palette by its title.
  async command(title) {
    await this.press('F1');
    const field = await this.field();
    await field.fill(`>${title}`);
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: title.split(': ').pop() }).first().waitFor();
    await this.press('Enter');
  }

  // Opens a file of the folder as a person does, by its name.
  async file(path, line) {
    await this.press('Control+P');
    const field = await this.field();
    await field.fill(path);
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: path.split('/').pop() }).first().waitFor();
    await this.press('Enter');
    await this.page.locator(`.tab[data-resource-name="${path.split('/').pop()}"]`).first().waitFor();
    await this.page.locator('.monaco-editor .view-lines').first().waitFor();
    if (line !== undefined) await this.line(line);
  }

  // Puts the cursor at the end of a line (counted from 1).
  async line(number) {
    await this.press('Control+G');
    const field = await this.field();
    await field.fill(`:${number}`);
    await this.press('Enter');
    await this.page.locator('.quick-input-widget').first().waitFor({ state: 'hidden' });
    await this.press('End');
  }

  type(text, delay = 0) { return this.page.keyboard.type(text, { delay }); }

  press(key) { return this.page.keyboard.press(key); }

  // A CSS selector, or the text of a button.
  async click({ selector, button, timeout = 15_000 }) {
    const found = selector ? this.page.locator(selector).first() : this.page.getByRole('button', { name: button }).first();
    await found.click({ timeout });
  }

  async text(selector) { return (await this.page.locator(selector).allInnerTexts()).join('\n'); }

  wait(selector, { state = 'visible', timeout = 15_000 } = {}) { return this.page.locator(selector).first().waitFor({ state, timeout }); }

  // The lines of the editor that are in view.
  async shown() {
    const lines = await this.page.locator('.editor-instance .view-lines .view-line').evaluateAll((all) => all
      .map((line) => ({ top: parseFloat(line.style.top), text: line.textContent })).sort((a, b) => a.top - b.top).map(({ text }) => text));
    return lines.join('\n').replaceAll('\u00a0', ' ');
  }

  async theme(kind) {
    const name = kind === 'dark' ? 'Dark Modern' : 'Light Modern';
    await this.press('Control+K');
    await this.press('Control+T');
    const row = this.page.getByRole('option', { name: new RegExp(`^${name}\\b`) }).first();
    await row.waitFor();
    await (await this.field()).fill(name);
    await this.page.locator(`.monaco-workbench.${kind === 'dark' ? 'vs-dark' : 'vs'}`).first().waitFor({ state: 'attached' });
    await this.press('Enter');
    await this.page.locator('.quick-input-widget').first().waitFor({ state: 'hidden' });
  }

  async screenshot(path) { await this.page.screenshot({ path }); }

  // The person closes the window: the editor says goodbye.
  async close() {
    await this.page.close({ runBeforeUnload: true });
    await within(10_000, 'the page does not close', this.page.isClosed() ? undefined : this.page.waitForEvent('close'));
    await this.browserServer.close();
  }

  // The browser is gone without a word, as after a crash.
  vanish() { return this.browserServer.kill(); }

  async reopen() { await this.look(); }

  async end() {
    await this.browserServer?.kill().catch(() => {});
    this.server?.stdin.end('\n');
    await this.gone;
    rmSync(this.work, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

function within(limit, what, work) {
  return Promise.race([work, new Promise((_, failed) => { setTimeout(() => failed(new Error(what)), limit).unref(); })]);
}

const DEEDS = {
  type: (window, { text, delay }) => window.type(text, delay),
  press: (window, { key }) => window.press(key),
  click: (window, words) => window.click(words),
  command: (window, { title }) => window.command(title),
  file: (window, { path, line }) => window.file(path, line),
  line: (window, { line }) => window.line(line),
  text: async (window, { selector }) => ({ text: await window.text(selector) }),
  shown: async (window) => ({ text: await window.shown() }),
  wait: (window, { selector, ...more }) => window.wait(selector, more),
  screenshot: (window, { path }) => window.screenshot(path),
  theme: (window, { kind }) => window.theme(kind),
  settings: (window, { settings }) => window.settle(settings),
  evaluate: async (window, { script }) => ({ value: await window.page.evaluate(script) }),
  log: (window) => ({ text: window.log, complaints: window.complaints }),
  close: (window) => window.close(),
  vanish: (window) => window.vanish(),
  reopen: (window) => window.reopen(),
};

async function program() {
  const { values, positionals: [folder] } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(['code', 'chromium', 'home', 'extension', 'grace', 'size'].map((name) => [name, { type: 'string' }])),
  });
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  if (!folder || !existsSync(folder)) throw new Error('usage: window.mjs --code PROGRAM --chromium FILE --home PRISM_HOME FOLDER');
  // Whoever is gone before the window is there is not waited for: the pipe's end ends it all.
  const lines = createInterface({ input: process.stdin });
  const waiting = [];
  let wake = () => {};
  lines.on('line', (line) => { waiting.push(line); wake(); });
  let over = false;
  lines.on('close', () => { over = true; wake(); });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => { over = true; wake(); });
  const [width, height] = (values.size ?? '').split('x').map(Number);
  const window = await Window.open(folder, { ...values, size: height ? { width, height } : undefined });
  say({ ok: true, did: 'open', url: window.url });
  for (;;) {
    while (!over && waiting.length === 0) await new Promise((done) => { wake = done; });
    if (waiting.length === 0) break;
    const line = waiting.shift();
    let deed;
    try {
      const { do: name, ...words } = JSON.parse(line);
      deed = name;
      if (!DEEDS[name]) throw new Error(`there is no ${name}; there are ${Object.keys(DEEDS).join(', ')}`);
      say({ ok: true, did: name, ...await DEEDS[name](window, words) });
    } catch (error) { say({ ok: false, did: deed, error: error.message }); }
  }
  await window.end();
}

if (process.argv[1] === import.meta.filename) {
  await program().then(() => process.exit(0), (error) => { console.error(error.message); process.exit(2); });
}
