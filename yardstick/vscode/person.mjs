// What a person does with Prism in a window: they are asked, look, allow, deny, revoke, and see where agents edit. Each check is a
// line. `person(parts)` goes through all of it; the parts are:
//   window    of window.mjs, with the project open and the extension in it; started with LOOKS among its settings
//   daemon    { url, management, post(path, body, token?), seen(path), prism, work, env }: the one that the window is connected to
//   agent     (name) => an agent of the daemon's: ask(scopes, roots, reason, more?), claim(), connect(), act(verb, args)
//   project   the folder; it needs src/main.js with the text MAIN, and saved as it is
//   check     (what, holds, found?) => void
//   shots     a folder for screenshots, or nothing
//   only      parts of checks' names, between |, to run those alone; or nothing
//   name      what the screenshots are called after: the editor's version
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';

// The window follows the browser's colours, so that both looks can be seen without touching its settings.
export const LOOKS = {
  'window.autoDetectColorScheme': true,
  'workbench.preferredDarkColorTheme': 'Default Dark Modern', 'workbench.preferredLightColorTheme': 'Default Light Modern',
};
export const MAIN = Array.from({ length: 40 }, (_, i) => `function number${i}() { return ${i}; }\n`).join('');

const SCOPES = ['read:files', 'read:buffers', 'edit:buffers', 'write:files', 'delete:files', 'run:commands'];

export async function person(parts) {
  const self = new Person(parts);
  for (const [name, part] of [
    ['the status bar', connected], ['a request is allowed', allowed], ['nothing is allowed by accident', byAccident],
    ['a request is denied', denied], ['a request is made less', narrowed], ['answered elsewhere', elsewhere],
    ['two at once', two], ['while somebody types', typing],
    ['a request of another folder', otherFolder], ['a change is confirmed', change], ['a command is confirmed', command],
    ['what an agent runs is seen', runs], ['where an agent edits', marks], ['the tree', tree], ['the keyboard alone', keyboard], ['a config waits', config],
  ]) if (part === connected || (parts.only ?? '').split('|').some((one) => name.includes(one))) await self.part(name, part);
}

class Person {
  constructor(parts) { Object.assign(this, parts, { page: parts.window.page, shotsTaken: 0 }); }

  async part(name, work) {
    console.log(`# ${name}`);
    try { await work(this); } catch (error) {
      this.check(name, false, error.message.split('\n').slice(0, 4).join(' '));
      if (this.shots) await this.page.screenshot({ path: `${this.shots}/failed-${this.name}-${name.replaceAll(' ', '-')}.png` }).catch(() => {});
    }
    // Whatever went wrong, the next one begins with a quiet window.
    for (const grant of (await this.daemon.seen('/mcp/sessions')).sessions ?? []) {
      await this.daemon.post('/mcp/revoke', { session_id: grant.session_id }, this.daemon.management);
    }
    for (const { request_id } of (await this.daemon.seen('/mcp/requests?open=1')).requests ?? []) {
      await this.daemon.post('/mcp/deny', { request_id }, this.daemon.management);
    }
    await this.closed();
  }

  // Both looks of what is there now.
  async shoot(name) {
    if (!this.shots) return;
    for (const look of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme: look });
      await this.page.waitForSelector(`.monaco-workbench.${look === 'dark' ? 'vs-dark' : 'vs'}`);
      await this.page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
      await this.page.screenshot({ path: `${this.shots}/${name}-${this.name}-${look}.png` });
    }
    await this.page.emulateMedia({ colorScheme: 'light' });
  }

  get question() { return this.page.locator('.quick-input-widget:visible'); }
  // By its first line, and by all of it if one begins like another: a row that was another before still has its text, out of sight.
  row(text) {
    const hasText = /^(Allow|Deny)$/.test(text) ? new RegExp(`^\\s*${text}\\s*$`) : text;
    return this.question.locator('.monaco-list-row', { has: this.page.locator('.quick-input-list-row:first-child', { hasText }) }).first();
  }
  // In the title of the editor that is looked at.
  button(text) { return this.page.locator('.editor-actions .action-item', { hasText: text }).first(); }
  closed() { return this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' }); }
  status() { return this.page.locator('.statusbar-item[id="prism.prism.prism.status"], .statusbar-item[id*="prism.status"]').first(); }

  // The question about somebody is there, and listens.
  async asked(title) {
    await this.question.locator('.quick-input-title', { hasText: title }).waitFor();
    // A pointer that rests on a row has its tooltip lie over the next one.
    await this.page.mouse.move(700, 700);
    // Rows that weigh are deaf for half a second: no wait for anything else says that this is over.
    await this.page.waitForTimeout(700);
  }

  async choose(text) { await this.row(text).click(); }

  says(text) { return this.page.locator('.statusbar-item', { hasText: text }).first().waitFor(); }

  request({ request }) { return this.daemon.seen('/mcp/requests').then(({ requests }) => requests.find(({ request_id }) => request_id === request)); }

  async until(what, look, limit = 8000) {
    const end = Date.now() + limit;
    for (;;) {
      const found = await look();
      if (found) return found;
      if (Date.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
      await new Promise((done) => { setTimeout(done, 25); });
    }
  }

  // One that may work here already.
  async working(name, more = {}, scopes = SCOPES) {
    const agent = this.agent(name);
    await agent.ask(scopes, [this.project], 'work');
    const { status, body } = await this.daemon.post('/mcp/approve', { request_id: agent.request, ...more }, this.daemon.management);
    if (status !== 200) throw new Error(`approve: ${status} ${JSON.stringify(body)}`);
    Object.assign(agent, { session: body.session_id, token: body.session_token });
    await agent.connect();
    return agent;
  }
}

async function connected(self) {
  await self.page.locator('.statusbar-item', { hasText: 'Prism' }).first().waitFor({ timeout: 60_000 });
  await self.until('it is connected', async () => !(await self.status().getAttribute('aria-label')).includes('not connected'), 30_000);
  self.check('the status bar says that it is connected', true);
  await self.shoot('status-connected');
}

async function allowed(self) {
  const agent = self.agent('claude-code');
  await agent.ask(SCOPES, [self.project], 'Fix the login page');
  await self.asked('claude-code asks for access');
  const text = await self.question.innerText();
  self.check('who, why, what and where are in the question',
    ['claude-code', 'Fix the login page', 'delete files', self.project].every((part) => text.includes(part)), text);
  self.check('what is new is said', text.includes('New for this agent'), text);
  self.check('the status bar counts it', (await self.status().innerText()).includes('1 request waiting'));
  await self.shoot('request');
  await self.choose('Allow');
  await self.closed();
  const claim = await agent.claim();
  self.check('the agent has its token', Boolean(claim.session_token), claim.status);
  const { approved_by: by } = await self.request(agent);
  self.check('the record says who decided', /editor/.test(by ?? ''), by);
  await agent.connect();
  await self.says('1 agent at work');
  await self.shoot('status-at-work');
}

async function byAccident(self) {
  const agent = self.agent('hasty');
  await agent.ask(['run:commands'], [self.project], 'it comes while somebody types');
  await self.question.waitFor();
  await self.page.keyboard.type('allow');
  await self.page.keyboard.press('Enter');
  await self.page.keyboard.press('Enter');
  await self.page.waitForTimeout(800);
  self.check('letters and Enter decide nothing', (await self.request(agent)).status === 'PENDING', (await self.request(agent)).status);
  // Enter on the first row opens what is asked in full; of keys that came with the letters nothing is left.
  const full = self.page.locator('.tab', { hasText: 'What hasty asks for' });
  if (await self.question.isVisible()) await self.page.keyboard.press('Enter');
  await full.waitFor();
  await self.shoot('request-in-full');
  await self.button('Back to the question').click();
  await self.asked('hasty asks for access');
  await self.page.keyboard.press('Escape');
  await self.closed();
  self.check('Escape is no decision', (await self.request(agent)).status === 'PENDING');
  await self.page.locator('.tab', { hasText: 'What hasty asks for' }).waitFor({ state: 'detached' });
  self.check('the status bar still has it', (await self.status().innerText()).includes('1 request waiting'));
  await self.status().click();
  await self.question.locator('.quick-input-title', { hasText: 'Prism' }).waitFor();
  await self.shoot('menu');
  await self.choose('hasty asks for access');
  await self.asked('hasty asks for access');
  await self.choose('Deny');
  await self.until('it is denied', async () => (await self.request(agent)).status === 'DENIED');
  self.check('it comes back from the status bar and is denied there', true);
}

async function denied(self) {
  const agent = self.agent('asker');
  await agent.ask(SCOPES, [self.project], 'something that is not wanted');
  await self.asked('asker asks for access');
  await self.choose('Deny, and say why');
  await self.question.locator('.quick-input-title', { hasText: 'Why not' }).waitFor();
  await self.page.keyboard.type('use the staging copy');
  await self.page.keyboard.press('Enter');
  const fate = await self.until('it is denied', async () => { const one = await self.request(agent); return one.status === 'DENIED' && one; });
  self.check('denied, with the reason', fate.denied_because === 'use the staging copy', fate.denied_because);
  self.check('the agent gets nothing', !(await agent.claim()).session_token);
}

async function narrowed(self) {
  const agent = self.agent('greedy');
  await agent.ask(SCOPES, [self.project], 'everything', { ttl_seconds: 3600 });
  await self.asked('greedy asks for access');
  await self.choose('all 6');
  await self.question.locator('.quick-input-title', { hasText: 'What may greedy do' }).waitFor();
  await self.shoot('request-scopes');
  await self.row('delete files').click();
  await self.row('run commands').click();
  await self.page.keyboard.press('Enter');
  await self.asked('greedy asks for access');
  await self.choose('1 h');
  await self.question.locator('.quick-input-title', { hasText: 'For how long' }).waitFor();
  await self.choose('5 min');
  await self.asked('greedy asks for access');
  self.check('the question shows what is left of it', (await self.question.innerText()).includes('4 of 6'));
  await self.choose('Allow, and confirm each change');
  await self.closed();
  const grant = await self.until('there is a grant', async () => (await self.daemon.seen('/mcp/sessions')).sessions.find(({ agent_id }) => agent_id === 'greedy'));
  self.check('less was allowed than was asked for', grant.allowed_scopes.length === 4 && !grant.allowed_scopes.includes('run:commands'), grant.allowed_scopes);
  self.check('for a shorter time, and each change is confirmed', grant.expires_in_ms <= 300_000 && grant.confirm_changes, grant.expires_in_ms);
}

async function elsewhere(self) {
  const agent = self.agent('quick');
  await agent.ask(['read:files'], [self.project], 'answered in the console first');
  await self.asked('quick asks for access');
  const began = Date.now();
  await self.daemon.post('/mcp/approve', { request_id: agent.request }, self.daemon.management);
  await self.closed();
  self.check(`the question closes by itself (${Date.now() - began} ms)`, true);
  await self.says('quick was allowed elsewhere');
  self.check('the status bar says so', true);
  await self.shoot('answered-elsewhere');
  // The same within a step of it.
  const other = self.agent('quicker');
  await other.ask(SCOPES, [self.project], 'denied while its scopes are looked at');
  await self.asked('quicker asks for access');
  await self.choose('all 6');
  await self.question.locator('.quick-input-title', { hasText: 'What may quicker do' }).waitFor();
  await self.daemon.post('/mcp/deny', { request_id: other.request }, self.daemon.management);
  await self.closed();
  await self.says('answered elsewhere');
  self.check('a step of it closes too', true);
}

async function two(self) {
  const [first, second] = [self.agent('first'), self.agent('second')];
  await first.ask(['read:files'], [self.project], 'asked before');
  await self.asked('first asks for access');
  await second.ask(['read:files'], [self.project], 'asked after');
  await self.says('2 requests waiting');
  self.check('the second does not take the first one\'s place', (await self.question.innerText()).includes('asked before'));
  await self.choose('Deny');
  await self.asked('second asks for access');
  self.check('the second is asked when the first is decided', (await self.request(first)).status === 'DENIED');
  await self.choose('Deny');
  await self.closed();
  await self.until('nothing waits', async () => (await self.request(second)).status === 'DENIED');
}

async function typing(self) {
  await self.window.file('README.md');
  await self.page.locator('.editor-instance .view-lines').first().click();
  const agent = self.agent('patient');
  const words = 'a person types this';
  const typed = self.page.keyboard.type(words, { delay: 60 });
  // It is about somebody who types, so they have begun.
  await self.until('the first letters are there', async () => (await self.window.shown()).includes(words.slice(0, 4)));
  await agent.ask(['read:files'], [self.project], 'it can wait');
  await self.says('1 request waiting');
  const early = await self.question.count();
  await typed;
  await self.until('every letter is in the text', async () => (await self.window.shown()).includes(words));
  self.check('the question waits for a pause, and no letter is lost', early === 0);
  await self.asked('patient asks for access');
  self.check('it is asked after the pause', true);
  await self.choose('Deny');
  await self.closed();
  await self.window.press('Control+Z');
  await self.window.press('Control+S');
}

async function otherFolder(self) {
  const agent = self.agent('stranger');
  const folder = self.project.replace(/\/[^/]*$/, '/elsewhere');
  (await import('node:fs')).mkdirSync(folder, { recursive: true });
  await agent.ask(['read:files'], [folder], 'not about this window');
  await self.says('1 request waiting');
  await self.page.waitForTimeout(1500);
  self.check('what is about another folder is not asked here', (await self.question.count()) === 0);
}

async function change(self) {
  const agent = await self.working('editor-agent', { confirm_changes: true });
  const before = (await agent.act('open_file', { path: `${self.project}/src/main.js` })).data;
  const edits = [{ range: { start: { line: 7, character: 28 }, end: { line: 7, character: 29 } }, new_text: '"seven"' }];
  const answer = agent.act('edit_buffer', { path: `${self.project}/src/main.js`, version: before.version, edits });
  await self.asked('editor-agent wants to change a file');
  const diff = self.page.locator('.monaco-diff-editor');
  await diff.waitFor();
  const text = () => diff.locator('.editor.modified .view-lines').innerText().then((all) => all.replaceAll('\u00a0', ' '));
  await self.until('the change is in the diff editor', async () => (await text()).includes('"seven"'));
  self.check('the change is shown in a diff editor', true);
  await self.shoot('confirm-diff');
  await self.choose('src/main.js');
  await self.closed();
  await self.button('Allow once').waitFor();
  await self.shoot('confirm-diff-looking');
  await self.button('Allow once').click();
  const result = await answer;
  self.check('allowed from the diff editor, and done', result.status === 'ok', result);
  await diff.waitFor({ state: 'detached' });
  self.check('the diff editor is closed again', true);
  const again = agent.act('edit_buffer', { path: `${self.project}/src/main.js`, version: result.data.version, edits: [{ ...edits[0], range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } } }] });
  await self.asked('editor-agent wants to change a file');
  const { confirmations: [shown] } = await self.daemon.seen('/mcp/confirmations');
  await self.daemon.post('/mcp/confirm', { confirmation_id: shown.confirmation_id, digest: shown.digest, allow: false }, self.daemon.management);
  await self.closed();
  self.check('denied elsewhere: the question closes, nothing is done', (await again).data.code === 'denied', (await again).data.code);
  await self.page.locator('.monaco-diff-editor').waitFor({ state: 'detached' });
  self.check('and so does the diff editor', true);
}

async function command(self) {
  const agent = await self.working('runner');
  const answer = agent.act('exec_command', { command: 'echo hello', cwd: self.project });
  await self.asked('runner wants to run a command');
  const text = await self.question.innerText();
  self.check('the command is shown as it is', text.includes('echo hello') && text.includes(self.project), text);
  await self.shoot('confirm-command');
  await self.choose('Allow once');
  const result = await answer;
  self.check('it ran after the click', result.status === 'ok', result);
  const long = `echo ${'x'.repeat(300)}; rm -f gone`;
  const second = agent.act('exec_command', { command: long, cwd: self.project });
  await self.asked('runner wants to run a command');
  await self.page.locator('.tab', { hasText: 'What runner wants to do' }).waitFor();
  await self.until('the end of a long command is seen', async () => (await self.page.locator('.editor-instance .view-lines').innerText()).replaceAll('\u00a0', ' ').includes('rm -f gone'));
  self.check('a command that no row holds is opened in full', true);
  await self.shoot('confirm-long-command');
  await self.choose('Deny');
  self.check('and denied', (await second).data.code === 'denied');
  await self.page.locator('.tab', { hasText: 'What runner wants to do' }).waitFor({ state: 'detached' });
}

// Tests that an agent runs, in the sandbox of the daemon: the person sees them run in a terminal of their editor.
async function runs(self) {
  const folder = `${self.project}/tested`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/package.json`, JSON.stringify({ name: 'tested', scripts: { test: 'node --test' } }));
  writeFileSync(`${folder}/sum.test.js`, "const { test } = require('node:test');\ntest('a sum is right', () => {});\ntest('the last cent is there', () => { throw new Error('0.01 is missing'); });\n");
  const agent = await self.working('tester', {}, ['read:files', 'test:code']);
  const answer = agent.act('run_tests', { tool: 'npm', cwd: folder });
  let result;
  void answer.then((told) => { result = told; });
  // Where there is no sandbox the person is asked each time.
  await self.until('it has run', async () => {
    if (!result && await self.row('Allow once').isVisible()) await self.choose('Allow once');
    return result;
  }, 60_000);
  self.check('its tests ran behind the fence', ['sandbox', 'landlock'].includes(result.data.fence?.enforced) && result.data.tests?.failed === 1, result);
  self.check('no panel is opened for it', !(await self.page.locator('.terminal-wrapper:visible').count()));
  await self.page.keyboard.press('Control+J');
  await self.page.locator('.terminal-wrapper:visible').first().waitFor();
  const tab = self.page.locator('.terminal-tabs-entry, .single-terminal-tab', { hasText: 'tester: npm' }).first();
  await tab.waitFor();
  if (await self.page.locator('.terminal-tabs-entry').count() > 1) await tab.click();
  await self.page.locator('[aria-label^="Maximize Panel"]').first().click();
  const rows = () => self.page.locator('.terminal-wrapper:visible .xterm-rows').first().innerText().then((text) => text.replaceAll('\u00a0', ' '));
  await self.until('it is drawn', async () => (await rows()).includes('[ended, exit code 1]'));
  const text = await rows();
  self.check('the person sees it in a terminal, with how it ended', text.includes('$ npm run test') && text.includes('0.01 is missing'), text);
  await self.shoot('agent-runs-tests');
  await self.page.locator('.terminal-wrapper:visible').first().click();
  await self.page.keyboard.type('exit');
  await self.page.keyboard.press('Enter');
  self.check('nothing that is typed there does anything', !(await rows()).includes('exit\n') && await tab.isVisible(), await rows());
  await self.page.locator('[aria-label^="Restore Panel"]').first().click();
  await self.page.keyboard.press('Control+J');
}

async function marks(self) {
  await self.window.file('src/main.js');
  const agent = await self.working('painter');
  const { data } = await agent.act('open_file', { path: `${self.project}/src/main.js` });
  const edits = [
    { range: { start: { line: 3, character: 0 }, end: { line: 3, character: 0 } }, new_text: '// three comes next\n' },
    { range: { start: { line: 9, character: 9 }, end: { line: 9, character: 16 } }, new_text: 'numberNine' },
  ];
  const result = await agent.act('edit_buffer', { path: `${self.project}/src/main.js`, version: data.version, edits });
  self.check('the edit is made', result.status === 'ok', result);
  const name = () => self.page.evaluate(() => [...document.querySelectorAll('.view-lines span')]
    .map((span) => getComputedStyle(span, '::after').content).some((content) => content.includes('painter')));
  await self.until('the agent\'s name is beside its edit', name);
  self.check('the agent\'s name is beside its edit', true);
  const lit = () => self.page.evaluate(() => [...document.querySelectorAll('.view-overlays .cdr')]
    .filter((one) => /rgba?\(91, 108, 240/.test(getComputedStyle(one).backgroundColor)).length);
  self.check('what it changed is lit', (await lit()) >= 2, await lit());
  await self.shoot('marks');
  const badge = self.page.locator('.explorer-folders-view .monaco-list-row', { hasText: 'main.js' }).locator('.monaco-icon-label').first();
  await self.until('the file has a badge', async () => /✎/.test(await badge.evaluate((one) => getComputedStyle(one, '::after').content)));
  self.check('the file has a badge in the explorer', true);
  await self.until('it fades', async () => !(await name()) && (await lit()) === 0, 15_000);
  self.check('it is gone after some seconds', true);
  await self.page.locator('.editor-instance .view-lines').first().click();
  await self.window.press('Control+S');
  await self.until('the badge goes with the save', async () => !/✎/.test(await badge.evaluate((one) => getComputedStyle(one, '::after').content)));
  self.check('the badge goes when it is saved', true);
}

async function tree(self) {
  const agent = await self.working('gardener', { ttl_seconds: 100 });
  await agent.act('open_file', { path: `${self.project}/src/main.js` });
  const asker = self.agent('visitor');
  await asker.ask(['read:files'], [self.project], 'to be seen in the tree');
  await self.asked('visitor asks for access');
  await self.page.keyboard.press('Escape');
  await self.closed();
  await self.page.locator('.activitybar [aria-label^="Prism"]').first().click();
  const view = self.page.locator('.pane-body .monaco-list[aria-label*="Access"], .tree-explorer-viewlet-tree-view').first();
  const row = (text) => view.locator('.monaco-list-row', { hasText: text }).first();
  await row('visitor asks for access').waitFor();
  await row('gardener').waitFor();
  self.check('the tree has what waits above who has access', true);
  const left = () => row('gardener').innerText().then((text) => /(\d+):(\d\d) left/.exec(text)?.[0]);
  const first = await self.until('a grant has time left', left);
  await self.until('the time is counted down', async () => (await left()) !== first);
  self.check('the time is counted down', true);
  await self.shoot('tree');
  await row('gardener').hover();
  await row('gardener').locator('[aria-label^="Revoke a grant"]').click();
  const dialog = self.page.locator('.monaco-dialog-box');
  await dialog.waitFor();
  await self.shoot('revoke');
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await self.until('the grant is over', () => agent.closed === 4001 || agent.closed);
  self.check('revoked from the tree: the agent\'s socket is closed', agent.closed === 4001, agent.closed);
  await row('gardener').waitFor({ state: 'detached' });
  self.check('and it is gone from the tree', true);
  await row('visitor asks for access').click();
  await self.asked('visitor asks for access');
  await self.choose('Deny');
  await self.page.locator('.welcome-view', { hasText: 'No agent has access' }).waitFor();
  self.check('with nobody there the tree says what to expect', true);
  await self.shoot('tree-empty');
  await self.window.press('Control+Shift+E');
}

async function keyboard(self) {
  const agent = self.agent('typist');
  await agent.ask(['read:files'], [self.project], 'decided by keys alone');
  await self.asked('typist asks for access');
  for (let i = 0; i < 20; i += 1) {
    const active = await self.question.locator('.monaco-list-row.focused').innerText().catch(() => '');
    if (/^Allow$/m.test(active.trim())) break;
    await self.page.keyboard.press('ArrowDown');
  }
  await self.page.keyboard.press('Enter');
  await self.until('it is allowed', async () => /APPROVED|ACTIVE/.test((await self.request(agent)).status));
  self.check('arrows and Enter allow it', true);
  const { request } = agent;
  const grant = await self.until('the grant is there', async () => (await self.daemon.seen('/mcp/sessions')).sessions.find(({ request_id }) => request_id === request));
  await self.says('Prism');
  await self.page.keyboard.press('F1');
  await self.question.locator('input.input').fill('>Prism: Revoke all');
  await self.row('Revoke all').click();
  await self.page.locator('.monaco-dialog-box').waitFor();
  await self.page.locator('.monaco-dialog-box').getByRole('button', { name: 'Revoke all' }).click();
  await self.until('nobody has access', async () => !(await self.daemon.seen('/mcp/sessions')).sessions.some(({ session_id }) => session_id === grant.session_id));
  self.check('Prism: Revoke all', true);
}

async function config(self) {
  const { prism, work, env } = self.daemon;
  const path = `${work}/prism.toml`;
  writeFileSync(path, '[server.late]\ncommand = ["true"]\nenv = { API_KEY = "hunter2" }\n');
  const notice = self.page.locator('.notification-toast', { hasText: 'A config waits for you to see it' });
  await notice.waitFor();
  self.check('why it waits is said', (await notice.innerText()).includes(path), await notice.innerText());
  await notice.locator('a', { hasText: 'Show the difference' }).click();
  const tab = self.page.locator('.tab', { hasText: 'prism.toml.diff' });
  await tab.waitFor();
  const text = await self.until('the difference is shown', async () => { const shown = await self.window.shown(); return shown.includes('+[server.late]') && shown; });
  self.check('with what to type, and no secret', text.includes(`prism trust ${path}`) && !text.includes('hunter2'), text);
  await self.shoot('config');
  await notice.locator('a', { hasText: 'Type the command' }).click();
  await self.page.locator('.terminal-wrapper:visible').first().waitFor();
  self.check('a terminal is there for the command, and runs nothing', await notice.isVisible());
  await self.shoot('config-command');
  execFileSync(prism, ['trust', '--yes', path], { env });
  await notice.waitFor({ state: 'detached' });
  await tab.waitFor({ state: 'detached' });
  self.check('the notification and the difference go when it counts', true);
  rmSync(path);
  await self.window.press('Control+J');
}
