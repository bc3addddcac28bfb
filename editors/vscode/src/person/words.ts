// Times, scopes and agents' own texts, as a person reads them.

/** What each scope means, in the words of docs/gate.md; a test compares them. */
const SCOPES: Readonly<Record<string, string>> = {
  'read:files': 'read files',
  'write:files': 'change files',
  'create:files': 'create files',
  'delete:files': 'delete files; each time you are asked',
  'rename:files': 'rename and move files',
  'search:files': 'find files by their names',
  'read:buffers': 'see what is open in the editor',
  'edit:buffers': 'edit what is open in the editor',
  'manage:buffers': 'open, switch and close editors',
  'split:panes': "split the editor's panes",
  'manage:tabs': "arrange the editor's tabs",
  'analyze:syntax': 'parse code',
  'detect:errors': 'see errors and warnings in code',
  'suggest:completion': 'ask for code completions',
  'format:code': 'format code',
  'navigate:symbols': 'look up definitions and references',
  'explore:project': "list the project's folders and files",
  'manage:workspace': "see and change the workspace's settings",
  'watch:changes': 'be told when files change',
  'build:project': 'build the project, which runs its build scripts',
  'exec:terminal': 'use a terminal; each command is shown to you first',
  'run:commands': 'run commands; each is shown to you first',
  'debug:session': 'run the project under a debugger',
  'test:code': "run the project's tests, which runs its code",
  'git:status': 'see the state of the repository',
  'git:commit': 'stage and commit changes',
  'git:branch': 'create and switch branches',
  'view:diffs': 'see what has changed in the repository',
  'search:content': 'search in a file',
  'replace:text': 'replace text across files',
  'regex:operations': 'search with regular expressions',
  'search:project': 'search in the whole project',
  'sync:cursor': 'see and move the cursor',
  'sync:selection': 'see what is selected',
  'sync:viewport': 'see and scroll what is in view',
  'monitor:state': 'follow what happens in the editor',
  'code:lens': 'read the notes the editor shows in code',
  'quick:fixes': "apply the editor's quick fixes",
  'refactor:code': 'rename symbols and refactor across files',
  'manage:plugins': "manage the editor's plugins; each time you are asked",
  'network:all': 'let what it runs reach the network, and the programs on this computer',
};

/** Scopes that delete something, run something, or let what runs reach others. They are named first, so that no line is too short for them. */
const RISKY = new Set([
  'delete:files',
  'build:project',
  'exec:terminal',
  'run:commands',
  'debug:session',
  'test:code',
  'manage:plugins',
  'network:all',
]);

export function scopeInWords(scope: string): string {
  return SCOPES[scope] ?? scope;
}

/** Without what it says behind a semicolon. */
export function scopeInShort(scope: string): string {
  return scopeInWords(scope).split(/[;,] /)[0] ?? scope;
}

export function isRisky(scope: string): boolean {
  return RISKY.has(scope) || SCOPES[scope] === undefined;
}

export function riskyFirst(scopes: readonly string[]): string[] {
  return [...scopes].sort((a, b) => Number(isRisky(b)) - Number(isRisky(a)));
}

/** `15 min`, `1 h`, `90 s`. */
export function span(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds >= 60 && seconds % 60 === 0) return `${seconds / 60} min`;
  if (seconds >= 120) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${seconds} s`;
}

/** `14 min left`, or `over`. */
export function left(until: number, now: number): string {
  return until > now ? `${remaining(until, now)} left` : 'over';
}

/** `14 min`, and by the second when it matters: `1:32`. */
export function remaining(until: number, now: number): string {
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  if (seconds < 120) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function ago(at: number, now: number): string {
  const seconds = Math.floor((now - at) / 1000);
  if (seconds < 3) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

export function count(number: number, one: string): string {
  return number === 1 ? `1 ${one}` : `${number} ${one}s`;
}

/** What cannot be seen, or turns what is around it: said instead of done. */
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;

/** A text of somebody else's in one line, with nothing in it that only looks like nothing. */
export function visible(text: string): string {
  const said = text
    .replace(/\s*\r?\n\s*/g, ' ⏎ ')
    .replace(/\t/g, ' ')
    .replace(UNSEEN, (one) => {
      return `[U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;
    });
  return said.trim();
}

/** The same for a text of many lines. */
export function visibleLines(text: string): string {
  const lines = text.split(/\r?\n/).map((line) => line.split('\t').map(visibleEnds).join('\t'));
  return lines.join('\n');
}

/** For labels that VS Code looks for icons in: an agent's `$(check)` stays what it is. */
export function label(text: string): string {
  return visible(text).replaceAll('$(', '$\u2060(');
}

/** For a Markdown text: nothing in it is Markdown, a link or an icon. */
export function escaped(text: string): string {
  return visible(text).replace(/[\\`*_{}[\]()#+\-.!|<>~$&]/g, '\\$&');
}

/** Cut to what fits, with the end that tells the most. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function visibleEnds(part: string): string {
  const spaces = /^(\s*)(.*?)(\s*)$/su.exec(part);
  return spaces ? `${spaces[1]}${visible(spaces[2] ?? '')}${spaces[3]}` : visible(part);
}
