import type { OutgoingHttpHeaders } from 'node:http';
import { type Ask, type Reply, send } from 'headgate-testbed/raw-http';
import { configOf, sha256 } from './gateway.ts';
import { type InProcess, startInProcess } from './in-process.ts';

/** A token of each role, and one that has expired. */
export const TOKENS = {
  viewer: 'viewer-token-0123456789',
  operator: 'operator-token-0123456789',
  admin: 'admin-token-0123456789',
  expired: 'expired-token-0123456789',
} as const;

export const ADMIN = {
  host: '127.0.0.1',
  port: 0,
  tokens: [
    { name: 'vera', role: 'viewer', token: TOKENS.viewer },
    { name: 'olaf', role: 'operator', sha256: sha256(TOKENS.operator) },
    { name: 'ada', role: 'admin', token: TOKENS.admin },
    { name: 'eve', role: 'admin', token: TOKENS.expired, expiresAt: '2020-01-01T00:00:00Z' },
  ],
};

export interface AdminAsk extends Omit<Ask, 'path' | 'method' | 'body'> {
  readonly as?: keyof typeof TOKENS | undefined;
  /** Is sent as JSON. */
  readonly json?: unknown;
  readonly body?: string | Buffer;
}

/** A gateway with an Admin API. */
export interface AdminGateway extends InProcess {
  /** Sends a request to the Admin API, as an admin unless `as` says otherwise. */
  admin(method: string, path: string, ask?: AdminAsk): Promise<Reply>;
}

/** Starts a gateway with an Admin API. */
export async function startAdminGateway(upstream: string, rest: Record<string, unknown> = {}): Promise<AdminGateway> {
  const gateway = await startInProcess(configOf(upstream, { admin: ADMIN, ...rest }));
  return { ...gateway, admin: (method, path, ask) => askAdmin(gateway.adminPort, method, path, ask) };
}

export function askAdmin(port: number, method: string, path: string, ask: AdminAsk = {}): Promise<Reply> {
  const { as, json, body, headers = {}, ...more } = { as: 'admin' as const, ...ask };
  const all: OutgoingHttpHeaders = {
    ...(as === undefined ? {} : { authorization: `Bearer ${TOKENS[as]}` }),
    ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
  const text = json === undefined ? body : JSON.stringify(json);
  return send(port, { method, path, headers: all, ...(text === undefined ? {} : { body: text }), ...more });
}
