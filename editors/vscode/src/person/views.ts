// What the daemon lays before the person: open requests, what waits to be confirmed, living grants, and configs that they have
// not seen. The members are those of `GET /mcp/requests`, `/mcp/confirmations` and `/mcp/sessions`. Whatever is missing is
// empty: a newer or older daemon must not break the window.

import { createHash } from 'node:crypto';

export interface RequestView {
  readonly kind: 'request';
  readonly id: string;
  readonly agent: string;
  readonly scopes: readonly string[];
  readonly newScopes: readonly string[];
  readonly roots: readonly string[];
  readonly newRoots: readonly string[];
  readonly reason: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly seconds: number;
  /** Through what it came: the client's name, or the way. */
  readonly asker: string;
}

export interface ConfirmationView {
  readonly kind: 'confirmation';
  readonly id: string;
  readonly agent: string;
  readonly session: string | undefined;
  /** Of exactly what is in `shown`; an answer names it. */
  readonly digest: string;
  /** `command`, `diff`, `delete`, `rename`, `plain`, `tool`, `definition`, or what a newer daemon knows. */
  readonly what: string;
  readonly shown: Json;
  /** The daemon left a part out, so this is not all that would be done. */
  readonly isCut: boolean;
  readonly createdAt: number;
  readonly expiresAt: number;
}

export interface GrantView {
  readonly kind: 'grant';
  readonly id: string;
  readonly request: string | undefined;
  readonly parent: string | undefined;
  readonly agent: string;
  readonly scopes: readonly string[];
  readonly roots: readonly string[];
  readonly expiresAt: number;
  readonly confirmsChanges: boolean;
  readonly sockets: number;
  readonly actions: number;
  readonly last: readonly ActionView[];
}

export interface ActionView {
  readonly at: number;
  readonly action: string;
  readonly about: string;
  readonly result: string;
}

/** A config that does not count as it is until the person has seen it. Nothing is decided about it here. */
export interface ConfigView {
  /** Of what is shown: another text under the same name is another. */
  readonly id: string;
  readonly path: string;
  readonly why: string;
  /** What to type in a terminal. */
  readonly fix: string;
  readonly unified: string;
}

export interface Snapshot {
  readonly requests: readonly RequestView[];
  readonly confirmations: readonly ConfirmationView[];
  readonly grants: readonly GrantView[];
  readonly configs: readonly ConfigView[];
}

/** What waits for the person. */
export type Waiting = RequestView | ConfirmationView;

export type Json = { readonly [name: string]: unknown };

export const NOTHING: Snapshot = { requests: [], confirmations: [], grants: [], configs: [] };

export function readSnapshot(message: Json): Snapshot {
  // Times are told apart from the daemon's clock only by what is left, and both run on this machine.
  const now = Date.now();
  return {
    requests: objects(message['requests']).map(request),
    confirmations: objects(message['confirmations']).map(confirmation),
    grants: objects(message['grants']).map((view) => grant(view, now)),
    configs: objects(message['configs']).map(config),
  };
}

/** Everything that waits, the oldest first. */
export function waiting(snapshot: Snapshot): Waiting[] {
  return [...snapshot.requests, ...snapshot.confirmations].sort((a, b) => a.createdAt - b.createdAt);
}

/** One is the same only as long as it is about the same thing. */
export function keyOf(one: Waiting): string {
  return one.kind === 'request' ? one.id : `${one.id} ${one.digest}`;
}

function request(view: Json): RequestView {
  const asker = object(view['asker']);
  const ways: Record<string, string> = { http: 'the HTTP API', cli: 'the command line', mcp: 'an MCP client' };
  return {
    kind: 'request',
    id: text(view['request_id']),
    agent: text(view['agent_id']),
    scopes: texts(view['scopes']),
    newScopes: texts(view['new_scopes']),
    roots: texts(view['roots']),
    newRoots: texts(view['new_roots']),
    reason: text(view['reason']),
    createdAt: moment(view['created_at']),
    expiresAt: moment(view['expires_at']),
    seconds: number(view['ttl_seconds']),
    asker: text(asker['client']) || (ways[text(asker['via'])] ?? 'a client that does not say which'),
  };
}

function confirmation(view: Json): ConfirmationView {
  const shown = object(view['shown']);
  // What is shown of an action lies in it beside the verb.
  const inner = shown['shown'] === undefined ? shown : object(shown['shown']);
  const kind = text(view['kind']);
  return {
    kind: 'confirmation',
    id: text(view['confirmation_id']),
    agent: text(view['agent_id']),
    session: text(view['session_id']) || undefined,
    digest: text(view['digest']),
    what: kind === 'action' ? text(inner['kind']) : kind,
    shown: inner,
    isCut: view['is_cut'] === true,
    createdAt: moment(view['created_at']),
    expiresAt: moment(view['expires_at']),
  };
}

function grant(view: Json, now: number): GrantView {
  const left = view['expires_in_ms'];
  return {
    kind: 'grant',
    id: text(view['session_id']),
    request: text(view['request_id']) || undefined,
    parent: text(view['parent']) || undefined,
    agent: text(view['agent_id']),
    scopes: texts(view['allowed_scopes']),
    roots: texts(view['roots']),
    expiresAt: typeof left === 'number' ? now + left : moment(view['expires_at']),
    confirmsChanges: view['confirm_changes'] === true,
    sockets: number(view['sockets']),
    actions: number(view['actions']),
    last: objects(view['last_actions']).map((action) => ({
      at: moment(action['at']),
      action: text(action['action']),
      about: text(action['about']),
      result: text(action['result']),
    })),
  };
}

function config(view: Json): ConfigView {
  const [path, why, unified] = [text(view['path']), text(view['why']), text(view['unified'])];
  const id = createHash('sha256').update(JSON.stringify([path, why, unified])).digest('hex').slice(0, 32);
  return { id, path, why, fix: text(view['fix']), unified };
}

export function object(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function number(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(object) : [];
}

function moment(value: unknown): number {
  return Date.parse(text(value)) || 0;
}
