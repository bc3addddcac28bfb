// The configuration of the hub.   node config.mjs FOLDER_OF_NPM_SERVERS FOLDER_OF_PYTHON_PROGRAMS DIR
import path from 'node:path';

const [npm, python, dir] = process.argv.slice(2);
const node = (name, ...more) => ['node', path.join(npm, name, 'dist/index.js'), ...more];
const destinations = {
  everything: node('server-everything'),
  files: node('server-filesystem', path.join(dir, 'files')),
  memory: node('server-memory'),
  time: [path.join(python, 'mcp-server-time')],
  git: [path.join(python, 'mcp-server-git'), '--repository', path.join(dir, 'repository')],
  dead: ['/bin/false'],
  mute: ['sleep', '3600'],
};
// A list waits longer, once, for a server that has never been seen; `mute` would have all of that.
console.log('[hub]\nfirst_patience = "5s"\n');
for (const [name, command] of Object.entries(destinations)) {
  console.log(`[server.${name}]\ncommand = ${JSON.stringify(command)}`);
  if (name === 'memory') console.log(`env = { MEMORY_FILE_PATH = ${JSON.stringify(path.join(dir, 'memory.jsonl'))} }`);
  console.log();
}
