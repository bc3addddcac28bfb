// Ends what runs here if this process is killed: children in groups of their own would outlive it. One small shell waits at a
// pipe that breaks when we are gone.

import { spawn, type ChildProcess } from 'node:child_process';

/** Keeps the leaders that it is told of; when nobody can tell it anything any more, kills their groups and sessions. */
const WAITS = `
all=' '
while read -r sign pid; do
  case $sign in
    +) all="$all$pid " ;;
    -) all="\${all%% $pid *} \${all#* $pid }" ;;
  esac
done
for pid in $all; do
  ps -e -o sess= -o pgid= | while read -r session group; do
    if [ "$session" = "$pid" ]; then kill -s KILL -- "-$group"; fi
  done
  kill -s KILL -- "-$pid"
done
`;

let shell: ChildProcess | undefined;

export function lookAfter(pid: number): void {
  if (shell === undefined) {
    shell = spawn('sh', ['-c', WAITS], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    // Without it a kill of ours is all that children die of.
    shell.on('error', () => {});
    shell.stdin?.on('error', () => {});
    shell.unref();
  }
  shell.stdin?.write(`+ ${pid}\n`);
}

/** It has ended, and its number may become somebody else's. */
export function lookAway(pid: number): void {
  shell?.stdin?.write(`- ${pid}\n`);
}
