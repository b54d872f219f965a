import { randomUUID } from 'node:crypto';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { eventually, type Reply, rawRequest } from 'headgate-testbed/raw-http';
import type { Seen, Upstream } from 'headgate-testbed/upstream';
import { expect } from 'vitest';
import { type Config, configOf, type Gateway, sha256, TOKEN } from './gateway.ts';

/** A header that is forwarded to the upstream, where it identifies the call. It is not part of the fingerprint. */
const MARK = 'x-test-key';

/** Token of the second application. */
export const OTHER_TOKEN = 'hg_other_token_0123456789abcdef';

export const freshKey = (): string => `key-${randomUUID()}`;

/**
 * A config with idempotent routes. They read the account from the query, from a header, from the body, or have none.
 */
export function keyedConfig(upstream: string, rest: Config = {}): Config {
  return configOf(upstream, {
    keys: [
      { sha256: sha256(TOKEN), application: 'app_1', role: 'account' },
      { token: OTHER_TOKEN, application: 'app_2', role: 'account' },
      { token: 'second-of-app-1', application: 'app_1', role: 'account' },
      { token: 'scoped', application: 'app_1', role: 'scoped', scope: 'scp_a' },
    ],
    accounts: [
      ...Array.from({ length: 8 }, (_, i) => ({ id: `acc_${i + 1}`, application: 'app_1', provider: 'mock' })),
      { id: 'acc_a', application: 'app_1', provider: 'mock', scope: 'scp_a' },
      { id: 'acc_other', application: 'app_2', provider: 'mock' },
    ],
    routes: [
      { route: 'POST /api/v1/emails', account: 'body.account_id', idempotent: true },
      { route: 'POST /api/v1/messages', account: 'query.account_id', idempotent: true },
      { route: 'PUT /api/v1/messages', account: 'query.account_id', idempotent: true },
      { route: 'HEAD /api/v1/messages', account: 'query.account_id', idempotent: true },
      { route: 'POST /api/v1/drafts', account: 'header.x-account-id', idempotent: true },
      { route: 'POST /api/v1/open', idempotent: true },
      { route: 'POST /api/v1/impatient', idempotent: { waitMs: 0 } },
      { route: 'POST /api/v1/again', idempotent: { waitMs: 0, onOrphan: 'reexecute' } },
      { route: 'POST /api/v1/small', idempotent: { maxKeptBytes: 1_000 } },
      { route: 'POST /api/v1/bypass', idempotent: { onStoreFailure: 'bypass' } },
      { route: 'POST /api/v1/plain', account: 'query.account_id' },
    ],
    ...rest,
  });
}

export interface Mail {
  readonly method?: string;
  /** @default {@link OPEN}, the route without an account */
  readonly path?: string;
  readonly body?: string | Buffer;
  /** @default 'application/json' */
  readonly type?: string | undefined;
  readonly token?: string;
  readonly headers?: OutgoingHttpHeaders;
}

export const OPEN = '/api/v1/open';
export const MESSAGES = '/api/v1/messages?account_id=acc_1';
export const BODY = '{"to":"ann@example.com","subject":"Hello"}';

/** Sends a request with this idempotency key. */
export function post(gateway: Pick<Gateway, 'ask'>, key: string, mail: Mail = {}): Promise<Reply> {
  const { method = 'POST', path = OPEN, body = BODY, token = TOKEN, headers = {} } = mail;
  const type = 'type' in mail ? mail.type : 'application/json';
  const all = { 'idempotency-key': key, [MARK]: key, 'content-type': type, 'x-api-key': token, ...headers };
  return gateway.ask(method, path, all, { body });
}

/** As {@link post}, but without a Content-Length: one chunk per piece. */
export function postChunked(gateway: Gateway, key: string, pieces: readonly (string | Buffer)[], mail: Mail = {}) {
  const { path = OPEN, token = TOKEN, type = 'application/json', headers = {} } = mail;
  const all = { 'idempotency-key': key, [MARK]: key, 'content-type': type, 'x-api-key': token, ...headers };
  return new Promise<{ status: number; headers: Reply['headers']; text: string }>((resolve, reject) => {
    const outgoing = request({
      host: '127.0.0.1',
      port: gateway.port,
      method: 'POST',
      path,
      agent: false,
      headers: all,
    });
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString() }),
      );
    });
    for (const piece of pieces) outgoing.write(piece);
    outgoing.end();
  });
}

/** The bytes of a request with this key, for a raw connection. */
export const rawPost = (key: string, path = OPEN, headers: Record<string, string> = {}, body = BODY): string =>
  rawRequest(
    'POST',
    path,
    { 'x-api-key': TOKEN, 'idempotency-key': key, [MARK]: key, 'content-type': 'application/json', ...headers },
    body,
  );

/** The requests with this key that reached the upstream, oldest first. */
export const callsOf = (upstream: Upstream, key: string): Seen[] =>
  upstream.seen.filter(({ headers }) => headers[MARK] === key);

/** Waits until the head of the request has reached the upstream. */
export const reached = (upstream: Upstream, key: string, times = 1): Promise<true> =>
  eventually(() => callsOf(upstream, key).length >= times, `call ${times} of ${key} at the upstream`, 15_000);

/** Fields that belong to one moment or one exchange. */
const OWN =
  /^(date|set-cookie|connection|keep-alive|transfer-encoding|content-length|retry-after|x-request-id)$|ratelimit/;

/** The names and values of the fields that every replay must have too. */
export function lasting({ rawHeaders }: Reply): [string, string][] {
  const fields = rawHeaders.flatMap((name, i) =>
    i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1] as string] as [string, string]] : [],
  );
  return fields.filter(([name]) => !OWN.test(name) && name !== 'idempotency-replayed');
}

/** Expects the original response, not a replay. */
export function expectOriginal(reply: Pick<Reply, 'status' | 'headers' | 'text'>, status = 200): void {
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status });
  expect(reply.headers['idempotency-replayed']).toBeUndefined();
}

/** Expects a replay of the original: the same status, fields and body, and no fields that belong to one moment (I4). */
export function expectReplay(reply: Reply, original: Reply): void {
  expect({ status: reply.status, text: reply.text }).toEqual({ status: original.status, text: original.text });
  expect(reply.body.equals(original.body)).toBe(true);
  expect(reply.headers['idempotency-replayed']).toBe('true');
  expect(lasting(reply)).toEqual(lasting(original));
  expect(Object.keys(reply.headers).filter((name) => /ratelimit|^retry-after$|^set-cookie$/.test(name))).toEqual([]);
}

/** Sends the request again until the response is neither a 409 `errors/conflict` nor a 503. */
export function settled(gateway: Gateway, key: string, mail: Mail = {}, withinMs = 20_000): Promise<Reply> {
  return eventually(
    async () => {
      const reply = await post(gateway, key, mail);
      return !/errors\/(conflict|service_unavailable)/.test(reply.text) && reply;
    },
    `an outcome of ${key}`,
    withinMs,
  );
}
