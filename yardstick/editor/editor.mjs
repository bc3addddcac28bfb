// The checklist of a sub-agent's life (E-04), in its order, for each language.
//   node editor.mjs PRISM WORK TABLE LANGUAGE...
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent } from './lib/agent.mjs';
import { Daemon } from './lib/daemon.mjs';
import { PROJECTS, makeProject, place } from './projects.mjs';
import { VERBS, Tally } from './tally.mjs';
import { until } from './lib/wait.mjs';

// What the yardstick has installed lies where no person's tools would.
const readable = (process.env.EDITOR_READABLE ?? '').split(':').filter(Boolean);
const SETTINGS = ['[gate]', 'rate_limit = 200', 'max_edit_bytes = "100kB"', '[editor]', `readable = ${JSON.stringify(readable)}`];
const [prism, work, file, ...languages] = process.argv.slice(2);
const tally = new Tally(languages);
const daemon = new Daemon(prism, work, SETTINGS);
await daemon.start();

const root = (language) => `${work}/${language}`;
for (const language of languages) {
  mkdirSync(root(language));
  makeProject(root(language), PROJECTS[language]);
}

tally.section('Basic Flow');
await tally.check('Request access → PENDING visible to the person', '', async () => {
  const agent = new Agent(daemon, 'basic');
  await agent.ask(['read:files'], [root(languages[0])]);
  const { requests } = await daemon.seen('/mcp/requests');
  return requests.some((one) => one.request_id === agent.request && one.status === 'PENDING');
});
const basic = new Agent(daemon, 'basic');
await tally.check('Approve → session token returned', '', async () => {
  await basic.ask(['read:files'], [root(languages[0])]);
  const told = await basic.approved();
  return told.session_token && told.session_id && told.expires_at;
});
await tally.check('Sub-agent WS connect with token → success', '', async () => {
  await basic.connect();
  return (await basic.event('session_opened')).allowed_scopes.includes('read:files');
});
await tally.check('Revoke session → WS closed & actions blocked', '', async () => {
  const main = PROJECTS[languages[0]].main;
  const before = await basic.act('open_file', { path: main });
  await daemon.post('/mcp/revoke', { session_id: basic.session }, daemon.management);
  await until('the socket is closed', () => basic.closed);
  const again = await basic.connect().then(() => until('it is closed again', () => basic.closed), () => 'refused');
  return before.status === 'ok' && again;
});

for (const language of languages) await inLanguage(language).catch((error) => tally.fail(`${language}: ${error.stack}`));

async function inLanguage(language) {
  const project = PROJECTS[language];
  const base = root(language);
  const agent = await new Agent(daemon, `works-${language}`).enter(['*'], [base], { ttl_seconds: 3600 });
  const follower = await new Agent(daemon, `follows-${language}`).enter(['monitor:state', 'read:buffers', 'watch:changes'], [base]);
  // Does a verb, notes how long it took, and returns its data; or says why it was not done. Who is told to come back does.
  const does = async (verb, args, by = agent) => {
    const began = Date.now();
    let result = await by.act(verb, args);
    for (let wait; (wait = result.data?.details?.retry_after_ms) && Date.now() - began < 60_000;) {
      await new Promise((then) => setTimeout(then, wait));
      result = await by.act(verb, args);
    }
    if (result.status !== 'ok') throw new Error(`${verb}: ${result.status} ${JSON.stringify(result.data)}`);
    tally.timed(verb, language, result.took);
    return result.data;
  };
  const refused = async (verb, args, by = agent) => {
    const result = await by.act(verb, args);
    if (result.status !== 'error') throw new Error(`${verb} was not refused: ${JSON.stringify(result)}`);
    return result.data;
  };
  const check = (text, run) => tally.check(text, language, run);
  const disk = (path) => readFileSync(`${base}/${path}`, 'utf8');
  const content = async (path) => (await does('open_file', { path })).content;
  const errors = (path) => until('the errors are told', async () => {
    const told = await does('get_errors', { path, wait_ms: 20_000 });
    return told.is_complete && told.analyzed_version === told.version && told;
  }, 60_000);
  // Changes a text in its buffer, and back.
  const changed = async (path, [from, to], during) => {
    const before = await does('open_file', { path });
    await does('edit_buffer', { path, version: before.version, edits: [{ old_text: from, new_text: to }] });
    try { return await during(); } finally { await does('edit_buffer', { path, undo: 1 }); }
  };

  tally.section('File Operations');
  await check('open_file inside root → success', async () => {
    const told = await does('open_file', { path: project.main });
    return told.content === disk(project.main) && told.language === language && told.path === `${base}/${project.main}`;
  });
  await check('open_file outside root → 403 error', async () => {
    const told = await refused('open_file', { path: '/etc/hostname' });
    const above = await refused('open_file', { path: `${base}/../home/management-token` });
    return [told, above].every((one) => one.code === 'outside_root' && one.details.status === 403);
  });
  await check('create/delete/rename files → works within scope', async () => {
    await does('create_file', { path: 'notes/one.txt', content: 'one\n', parents: true });
    const made = disk('notes/one.txt') === 'one\n';
    await does('rename_file', { path: 'notes/one.txt', new_path: 'notes/two.txt' });
    const moved = !existsSync(`${base}/notes/one.txt`) && disk('notes/two.txt') === 'one\n';
    await does('write_file', { path: 'notes/two.txt', content: 'two\n' });
    const written = disk('notes/two.txt') === 'two\n';
    await does('delete_file', { path: 'notes/two.txt' });
    await does('delete_file', { path: 'notes' });
    return made && moved && written && !existsSync(`${base}/notes`);
  });
  await check('search_files → returns filtered results', async () => {
    const { entries } = await does('search_files', { pattern: project.search });
    return entries.length === project.found && entries.every((one) => !one.path.includes('/.git/'));
  });
  await check('watch_file → changes from outside are told', async () => {
    writeFileSync(`${base}/watched.txt`, 'one\n');
    await does('watch_file', { path: 'watched.txt' });
    writeFileSync(`${base}/watched.txt`, 'two\n');
    const event = await agent.event('file_watched', (one) => one.path === `${base}/watched.txt`);
    await does('watch_file', { path: 'watched.txt', stop: true });
    return event;
  });

  tally.section('Buffer Management');
  await check('get_buffers → returns current buffers', async () => {
    const { buffers } = await does('get_buffers');
    return buffers.some((one) => one.path === `${base}/${project.main}` && one.language === language);
  });
  await check('edit_buffer → changes reflected in the editor', async () => {
    const before = await content(project.main);
    const during = await changed(project.main, project.edit, () => content(project.main));
    return during === before.replace(...project.edit) && (await content(project.main)) === before;
  });
  await check('save_buffer → the file is what the buffer is', async () => {
    const before = disk(project.other);
    const [old_text, new_text] = project.saved;
    await does('edit_buffer', { path: project.other, old_text, new_text });
    const unsaved = disk(project.other) === before;
    await does('save_buffer', { path: project.other });
    const saved = disk(project.other) === before.replace(old_text, new_text);
    await does('edit_buffer', { path: project.other, undo: 1 });
    await does('save_buffer', { path: project.other });
    return unsaved && saved && disk(project.other) === before;
  });
  await check('switch_buffer → cursor moves to correct buffer', async () => {
    await does('switch_buffer', { path: project.other });
    await does('switch_buffer', { path: project.main });
    return (await does('get_cursor_pos', {})).path === `${base}/${project.main}`;
  });
  await check('split_pane → new pane created', async () => {
    const told = await does('split_pane', { path: project.other, direction: 'right' });
    return told.panes.some((one) => one.id === told.pane && one.path === `${base}/${project.other}`) && told.panes.length > 1;
  });
  await check('close_buffer → it is closed', async () => {
    await does('close_buffer', { path: project.other });
    return !(await does('get_buffers')).buffers.some((one) => one.path === `${base}/${project.other}`);
  });

  tally.section('Code Analysis');
  await check('analyze_syntax → returns syntax tree', async () => {
    const told = await does('analyze_syntax', { path: project.main, tree: true });
    return told.tree && !told.has_errors && told.outline.some((one) => one.name === project.declared);
  });
  await check('get_errors → returns diagnostic info', async () => {
    const clean = await errors(project.main);
    const found = await changed(project.main, project.mistake, () => errors(project.main));
    const gone = await errors(project.main);
    const bad = (told) => told.diagnostics.filter((one) => one.severity === 'error').length;
    if (bad(clean) !== 0 || bad(found) < 1 || bad(gone) !== 0) throw new Error(JSON.stringify({ clean, found, gone }));
    return true;
  });
  await check('get_completions → returns code suggestions', () => changed(project.main, project.completes, async () => {
    const [, to, expected] = project.completes;
    const position = place(await content(project.main), to, to.length);
    const told = await does('get_completions', { path: project.main, position });
    return told.items.some((one) => one.label.startsWith(expected)) || JSON.stringify(told.items.map((one) => one.label)).slice(0, 300);
  }));
  if (project.messy) {
    await check('format_code → code formatted correctly', async () => {
      const [path, messy, tidy] = project.messy;
      const before = await does('open_file', { path });
      const end = { line: before.lines, character: 0 };
      await does('edit_buffer', { path, version: before.version, edits: [{ range: { start: { line: 0, character: 0 }, end }, new_text: messy }] });
      const told = await does('format_code', { path });
      const after = await content(path);
      await does('close_buffer', { path, discard: true });
      return told.is_changed && (tidy === null ? after.includes('eggs(): number {') : after === tidy) ? true : after;
    });
  } else {
    await check('format_code → a server that cannot format says so', async () => (await refused('format_code', { path: project.main })).code === 'unsupported');
  }
  await check('goto_definition → leads to the definition and the references', async () => {
    const position = place(await content(project.main), project.definition, 1);
    const { locations } = await does('goto_definition', { path: project.main, position });
    const used = await does('goto_definition', { path: project.main, position, kind: 'references' });
    return locations.some((one) => one.path === `${base}/${project.defined}`) && used.locations.length >= project.references;
  });

  tally.section('Project Management');
  await check('explore_tree → returns project structure', async () => {
    const { entries } = await does('explore_tree');
    return Object.keys(project.files).filter((path) => !path.startsWith('.')).every((path) => entries.some((one) => one.path === path && one.kind === 'file'));
  });
  await check('get_workspace_info → tells the projects and their servers', async () => {
    const told = await does('get_workspace_info');
    return told.roots[0].path === base && told.runtime.ui === false;
  });
  await check('build_project → build executed successfully', async () => {
    const told = await does('build_project', { tool: project.build });
    if (!told.is_ok) throw new Error(JSON.stringify(told));
    await agent.event('build_completed', (one) => one.is_ok);
    return told.fence.enforced;
  });
  await check('run_tests → test results returned', async () => {
    const told = await does('run_tests', { tool: project.tests });
    if (told.tests?.passed !== project.passed || told.tests.failed !== 0) throw new Error(JSON.stringify(told));
    return agent.event('test_results', (one) => one.passed === project.passed);
  });

  tally.section('Terminal Integration');
  await check('exec_command → command executed in the project', async () => {
    const told = await does('exec_command', { command: ['sh', '-c', 'pwd'] });
    return told.exit_code === 0 && told.stdout === `${base}\n`;
  });
  await check('get_output → terminal output received', async () => {
    const { terminal } = await does('open_terminal', { command: ['sh'] });
    await does('send_input', { terminal, input: 'echo $((6 * 7)) birds; exit\n' });
    let text = '';
    await until('the output is told', async () => {
      const told = await does('get_output', { terminal, wait_ms: 200 });
      text = told.output;
      return text.includes('42 birds') && !told.is_running;
    });
    return agent.event('output_received');
  });

  tally.section('Real-time Sync');
  await check('Cursor movement → sub-agent receives cursor_moved event', async () => {
    await does('set_cursor_pos', { path: project.main, position: { line: 1, character: 0 }, selection: { start: { line: 0, character: 0 }, end: { line: 0, character: 3 } } });
    const moved = await follower.event('cursor_moved', (one) => one.path === `${base}/${project.main}`);
    await follower.event('selection_changed');
    return moved.position.line === 1;
  });
  await check('File changes → sub-agent receives buffer_changed event', async () => {
    const since = performance.now();
    await changed(project.main, project.edit, () => follower.event('buffer_changed', (one) => one.at > since && one.path === `${base}/${project.main}`));
    return true;
  });
  await check('Manual sync → sub-agent can query current state', async () => {
    const cursor = await does('get_cursor_pos', { path: project.main });
    const selection = await does('get_selection', { path: project.main });
    const viewport = await does('sync_viewport', { path: project.main, first_line: 1, last_line: 3 });
    return cursor.position.line === 1 && selection.text === disk(project.main).slice(0, 3) && viewport.first_line === 1 && viewport.ui === false;
  });

  tally.section('The verbs that the checklist does not name');
  await check('find, regex and replace', async () => {
    const inFile = await does('find_in_file', { path: project.main, text: 'eggs' });
    const inAll = await does('find_in_project', { text: 'eggs' });
    const regex = await does('regex_search', { pattern: 'e[g]{2}s' });
    const preview = await does('replace_text', { text: 'tweet', new_text: 'chirp', preview: true });
    return inFile.matches.length >= 1 && inAll.files === 2 && regex.matches.length === inAll.matches.length && preview.replacements >= 1;
  });
  await check('git, from a status to a commit on a branch', async () => {
    writeFileSync(`${base}/NOTES.md`, '# Notes\n');
    const before = await does('git_status');
    await does('git_branch', { name: 'side', create: true, switch: true });
    const diff = await does('git_diff');
    await does('git_add', { path: 'NOTES.md' });
    const { commit } = await does('git_commit', { message: 'Write notes' });
    const event = await agent.event('commit_made', (one) => one.commit === commit);
    return before.branch === 'main' && before.entries.some((one) => one.path === `${base}/NOTES.md`) && diff.files && event;
  });
  await check('a symbol is renamed everywhere', async () => {
    const [path, old, name] = project.rename;
    const position = place(await content(path), old, 1);
    const told = await does('refactor_symbol', { path, position, new_name: name });
    const there = (await content(path)).includes(name) && (await content(project.main)).includes(name);
    for (const one of told.files) await does('edit_buffer', { path: one.path, undo: 1 });
    return told.files.length === project.renamed && there ? true : JSON.stringify(told);
  });
  await check('quick fixes and lenses are told, or it is said that there are none', async () => {
    const start = place(await content(project.main), project.fix ?? 'song');
    const fixes = await agent.act('apply_quick_fix', { path: project.main, range: { start, end: start } });
    const lenses = await agent.act('get_code_lens', { path: project.main });
    for (const [verb, told] of [['apply_quick_fix', fixes], ['get_code_lens', lenses]]) {
      if (told.status === 'ok') tally.timed(verb, language, told.took);
      else if (told.data.code !== 'unsupported') throw new Error(JSON.stringify(told));
    }
    return true;
  });
  await check('manage_plugins → the language server is listed', async () => {
    const { servers } = await does('manage_plugins', { do: 'list' });
    return servers.some((one) => one.language === language && one.pid);
  });
}

tally.section('Security & Scope');
const first = PROJECTS[languages[0]];
await tally.check('Sub-agent exceeds scope limits → actions rejected', '', async () => {
  const agent = await new Agent(daemon, 'narrow').enter(['read:files'], [root(languages[0])]);
  const told = await agent.act('edit_buffer', { path: first.main, old_text: 'song', new_text: 'chirp' });
  return told.data.code === 'forbidden' && told.data.details.status === 403;
});
await tally.check('Edit size > max_edit_bytes → rejected', '', async () => {
  const agent = await new Agent(daemon, 'large').enter(['*'], [root(languages[0])]);
  const told = await agent.act('edit_buffer', { path: first.main, old_text: 'song', new_text: 'x'.repeat(100_001) });
  return told.data.code === 'too_large' && told.data.details.status === 413;
});
await tally.check('Rate limiting → excessive requests throttled', '', async () => {
  const agent = await new Agent(daemon, 'fast').enter(['*'], [root(languages[0])]);
  const told = await Promise.all(Array.from({ length: 1500 }, () => agent.act('get_buffers')));
  const slowed = told.filter((one) => one.data.code === 'rate_limited');
  return slowed.length > 0 && slowed.every((one) => one.data.details.status === 429) && told.some((one) => one.status === 'ok');
});
await tally.check('Audit log contains entries for each sub-agent action', '', async () => {
  const lines = () => readdirSync(`${daemon.home}/audit`).filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(`${daemon.home}/audit/${name}`, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)));
  const missing = await until('each action is on record', () => {
    const said = new Set(lines().filter((line) => line.session_id).map((line) => line.action));
    const missing = VERBS.filter((verb) => tally.wasDone(verb) && !said.has(verb));
    return missing.length === 0 && 'none';
  });
  return missing;
});

await daemon.stop();
tally.finish(file);
