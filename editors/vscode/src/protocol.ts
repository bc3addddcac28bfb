// What the daemon and a plugin say to each other, as docs/plugin.schema.json has it. Members that are not known are
// passed over.

export const PROTOCOL = 1;

export interface Register {
  type: 'register';
  protocol: number;
  instance_id: string;
  kind: string;
  version: string;
  roots: string[];
  capabilities: string[];
  ui: boolean;
  started_at_ms: number;
  pid: number;
  /** Whether the person at this window may answer requests and confirmations. */
  decides?: boolean;
  /** Whether agents may be woken by a chat of this editor. */
  chat?: boolean;
  /** Whether what agents run is to be shown here. */
  shows?: boolean;
}

export interface Registered {
  type: 'registered';
  protocol: number;
  assigned_id: string;
  bridge_version: string;
  epoch: number;
  limits: { max_message_bytes: number; max_commands: number; max_events_per_second: number };
}

export interface Cmd {
  type: 'cmd';
  id: number;
  action: string;
  args: Record<string, unknown>;
  session_id: string;
  deadline_ms: number;
  /** The folders that were granted to the session, often fewer than are open; left out where the daemon itself asks. */
  roots?: string[];
}

export interface Failure {
  code: string;
  message: string;
  details?: Record<string, unknown>;
}

export interface OpenBuffer {
  path: string;
  version: number;
  is_dirty: boolean;
  text?: string;
}

/** Something that an agent runs in one of the roots begins. */
export interface Show {
  type: 'show';
  id: number;
  /** `command` prints and ends; `terminal` is a screen of `rows` and `cols`. */
  kind: 'command' | 'terminal';
  title: string;
  command: string;
  path: string;
  rows?: number;
  cols?: number;
}

/** What comes next of it, to be written to a terminal as it is. */
export type ShowOutput = { type: 'show_output'; id: number; text: string };
export type ShowResized = { type: 'show_resized'; id: number; rows: number; cols: number };

export interface ShowEnded {
  type: 'show_ended';
  id: number;
  exit_code?: number;
  signal?: number;
  note?: string;
}

export type FromPlugin =
  | Register
  | { type: 'state'; seq: number; buffers: OpenBuffer[] }
  | { type: 'result'; id: number; status: 'ok'; data: object }
  | { type: 'result'; id: number; status: 'error'; error: Failure }
  | { type: 'progress'; id: number; message: string; done?: number; total?: number }
  | { type: 'event'; event: string; seq: number; data: Record<string, unknown> }
  | { type: 'pong'; id: number; ui: boolean };

/** What the daemon says that the line itself knows. Others (`desk`, `decided`, `ring`, `show`) go to who listens for them. */
export type ToPlugin =
  | Registered
  | Cmd
  | { type: 'cancel'; id: number }
  | { type: 'ping'; id: number }
  | { type: 'get_state' }
  | { type: 'error'; error: Failure };

/** A message of any type. */
export interface Message {
  readonly type: string;
  readonly [member: string]: unknown;
}
