// How long each verb took in each language.
import { writeFileSync } from 'node:fs';
import { Checks } from './lib/checks.mjs';

export const VERBS = ('open_file create_file write_file delete_file rename_file search_files watch_file get_buffers edit_buffer save_buffer '
  + 'switch_buffer split_pane close_buffer analyze_syntax get_errors get_completions format_code goto_definition explore_tree '
  + 'build_project run_tests get_workspace_info exec_command open_terminal get_output send_input git_status git_add git_commit '
  + 'git_diff git_branch find_in_file find_in_project replace_text regex_search get_cursor_pos set_cursor_pos get_selection '
  + 'sync_viewport get_code_lens apply_quick_fix refactor_symbol manage_plugins').split(' ');

export class Tally extends Checks {
  constructor(languages) {
    super();
    Object.assign(this, { languages, times: new Map() });
  }

  // The best of all times counts: a first call may start a server.
  timed(verb, language, ms) {
    const key = `${verb} ${language}`;
    const { first = ms, best = ms } = this.times.get(key) ?? {};
    this.times.set(key, { first, best: Math.min(best, ms) });
  }

  wasDone(verb) { return this.languages.some((language) => this.times.has(`${verb} ${language}`)); }

  finish(file) {
    const cell = (verb, language) => {
      const time = this.times.get(`${verb} ${language}`);
      const written = (ms) => (ms < 10 ? ms.toFixed(1) : String(Math.round(ms)));
      return time ? `${written(time.best)} (${written(time.first)})` : '-';
    };
    const rows = VERBS.map((verb) => `| ${verb} | ${this.languages.map((language) => cell(verb, language)).join(' | ')} |`);
    const table = [
      'Milliseconds over the WebSocket, without the person: the best (the first, which may have started a language server).', '',
      `| verb | ${this.languages.join(' | ')} |`, `|---|${'---|'.repeat(this.languages.length)}`, ...rows, '',
    ].join('\n');
    writeFileSync(file, table);
    console.log(`\n${table}`);
    this.end('editor');
  }
}
