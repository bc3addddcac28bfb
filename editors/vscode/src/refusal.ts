// Why something was not done, in the codes of docs/plugin.md.

export type Code =
  | 'bad_arguments'
  | 'not_found'
  | 'outside_root'
  | 'changed'
  | 'too_large'
  | 'rate_limited'
  | 'denied'
  | 'unsupported'
  | 'timed_out'
  | 'failed';

/** Thrown by verbs. Its message is read by agents and persons: it says what is wrong and what to do about it. */
export class Refusal extends Error {
  constructor(
    readonly code: Code,
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
    this.name = 'Refusal';
  }

  /** Whatever was thrown, as a refusal. */
  static of(error: unknown): Refusal {
    if (error instanceof Refusal) return error;
    const message = error instanceof Error ? error.message : String(error);
    return new Refusal('failed', message || 'the editor refused it and does not say why');
  }
}

export function wrong(message: string): Refusal {
  return new Refusal('bad_arguments', message);
}
