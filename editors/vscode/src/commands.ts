// Commands on their way: each is answered once, within its deadline, and ended when nobody waits for it any more.

import * as vscode from 'vscode';
import { Args } from './args';
import type { Desk } from './desk';
import { isBeneath } from './paths';
import type { Cmd, Failure, FromPlugin } from './protocol';
import { Refusal } from './refusal';
import type { Call, Verb } from './verbs';

/** Commands at the same time, as many as the daemon sends. Beyond it one is refused and told to come back. */
const MAX_COMMANDS = 64;
/** How much earlier than the daemon a command is ended here, so that the agent is told by who knows why. */
const EARLIER_MS = 250;
/** The longest that a timer can wait. */
const MOST_MS = 0x7fff_ffff;

/** A command on its way. */
interface Running {
  readonly stop: vscode.CancellationTokenSource;
  readonly timer: NodeJS.Timeout;
}

export class Commands {
  private readonly running = new Map<number, Running>();

  constructor(
    private readonly desk: Desk,
    private readonly verbs: ReadonlyMap<string, Verb>,
    private readonly send: (message: FromPlugin) => boolean,
  ) {}

  take(command: Cmd): void {
    const { id, action } = command;
    if (this.running.size >= MAX_COMMANDS) {
      const why = `${MAX_COMMANDS} commands are on their way already; try again`;
      return this.answer(id, new Refusal('rate_limited', why, 1_000));
    }
    const stop = new vscode.CancellationTokenSource();
    const late = (): void => {
      const why = 'took too long in this editor; whether it was done is not known, look again';
      stop.cancel();
      end(new Refusal('timed_out', `${action} ${why}`));
    };
    const withinMs = Math.min(Math.max(command.deadline_ms - EARLIER_MS, 0), MOST_MS);
    const running = { stop, timer: setTimeout(late, withinMs) };
    // One that was ended before is listened to no more; its number may be another's by now.
    const isRunning = (): boolean => this.running.get(id) === running;
    const end = (result: object): void => {
      if (!isRunning()) return;
      this.forget(id);
      this.answer(id, result);
    };
    this.running.set(id, running);
    const progress = (message: string, done?: number, total?: number): void => {
      const counts = { ...(done === undefined ? {} : { done }), ...(total === undefined ? {} : { total }) };
      if (isRunning()) this.send({ type: 'progress', id, message, ...counts });
    };
    const call = {
      args: new Args(command.args),
      session: command.session_id,
      mayChange: (path: string): boolean => command.roots?.some((root) => isBeneath(path, root)) ?? true,
      stop: stop.token,
      desk: this.desk,
      progress,
    };
    void this.run(action, call).then(end, (error: unknown) => end(this.refusalOf(action, error)));
  }

  /** Ends a command that nobody waits for any more. */
  cancel(id: number): void {
    this.running.get(id)?.stop.cancel();
    this.forget(id);
  }

  /** Ends all: there is nobody to answer any more. */
  end(): void {
    for (const id of [...this.running.keys()]) this.cancel(id);
  }

  private forget(id: number): void {
    const running = this.running.get(id);
    clearTimeout(running?.timer);
    running?.stop.dispose();
    this.running.delete(id);
  }

  private async run(action: string, call: Call): Promise<object> {
    const verb = this.verbs.get(action);
    if (!verb) throw new Refusal('unsupported', `this editor cannot ${action}`);
    return verb(call);
  }

  private refusalOf(action: string, error: unknown): Refusal {
    if (!(error instanceof Refusal)) this.desk.log.warn(`${action} failed: ${String(error)}`);
    return Refusal.of(error);
  }

  private answer(id: number, result: object): void {
    if (!(result instanceof Refusal)) {
      if (this.send({ type: 'result', id, status: 'ok', data: result })) return;
      // Nobody is there any more, or it is more than a message holds.
      return this.answer(id, new Refusal('too_large', 'the result is too large for one message; ask for less'));
    }
    const error: Failure = { code: result.code, message: result.message };
    if (result.retryAfterMs !== undefined) error.details = { retry_after_ms: result.retryAfterMs };
    this.send({ type: 'result', id, status: 'error', error });
  }
}
