// `exec_command`: one command, to its end.

import { attend } from '../command/child';
import { FENCE } from '../command/fence';
import { unsavedBeneath } from '../command/unsaved';
import { additions, folder, line, refuseLong, words } from '../command/words';
import { Refusal } from '../refusal';
import type { Call, Verb } from '../verbs';

/** How long a command may run, if nothing else is said, and at most. */
const USUAL_TIME = 60_000;
const LONGEST_TIME = 600_000;

/** Commands that run at the same time. One more is refused. */
const MAX_AT_ONCE = 16;
let running = 0;

export const command: Record<string, Verb> = { exec_command };

async function exec_command(call: Call): Promise<object> {
  const { args, desk, session } = call;
  const run = words(args.take('command'));
  const env = additions(args.take('env'));
  const patience = args.number('timeout_ms', 1, LONGEST_TIME) ?? USUAL_TIME;
  const wanted = args.maybeText('cwd');
  args.done();
  const cwd = await folder(desk, wanted);
  refuseLong(run, env);
  if (running >= MAX_AT_ONCE) {
    throw new Refusal('rate_limited', 'too many commands run already; try again when one has ended');
  }
  running += 1;
  const said = line(run);
  const tell = (event: string, data: object) => desk.voice.tell(event, cwd, { command: said, by: session, ...data });
  let pid = 0;
  let exitCode: number | null = null;
  try {
    const started = (number: number) => {
      pid = number;
      tell('process_started', { pid });
    };
    const unsaved = unsavedBeneath(cwd);
    const ended = await attend({ words: run, cwd, env, patience }, call.stop, { started });
    exitCode = ended.exitCode;
    const [out, err] = [ended.out.told(), ended.err.told()];
    return {
      exit_code: exitCode,
      signal: ended.signal,
      timed_out: ended.timedOut,
      stdout: out.text,
      stderr: err.text,
      stdout_bytes_left_out: out.leftOut,
      stderr_bytes_left_out: err.leftOut,
      duration_ms: ended.duration,
      cwd,
      fence: FENCE,
      unsaved,
    };
  } finally {
    running -= 1;
    if (pid !== 0) {
      tell('process_ended', { pid, exit_code: exitCode });
      tell('command_executed', { exit_code: exitCode });
    }
  }
}
