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

export interface Cancel {
  type: 'cancel';
  id: number;
}

export interface Ping {
  type: 'ping';
  id: number;
}

export interface GetState {
  type: 'get_state';
}

export interface Complaint {
  type: 'error';
  error: Failure;
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

export type FromPlugin =
  | Register
  | { type: 'state'; seq: number; buffers: OpenBuffer[] }
  | { type: 'result'; id: number; status: 'ok'; data: object }
  | { type: 'result'; id: number; status: 'error'; error: Failure }
  | { type: 'progress'; id: number; message: string; done?: number; total?: number }
  | { type: 'event'; event: string; seq: number; data: Record<string, unknown> }
  | { type: 'pong'; id: number; ui: boolean };

/** What the daemon says that the line itself knows. Others (`desk`, `decided`, `ring`) go to who listens for them. */
export type ToPlugin = Registered | Cmd | Cancel | Ping | GetState | Complaint;

/** A message of any type. */
export interface Message {
  readonly type: string;
  readonly [member: string]: unknown;
}
