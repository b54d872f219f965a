import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createExchange } from '../../src/exchange/exchange.ts';
import { answerFields, requestFields } from '../../src/proxy/upstream-fields.ts';

const NONE: ReadonlySet<string> = new Set();

/** Fields of the forwarded request, as the upstream gets them. */
const forwarded = (rawHeaders: string[], listed = NONE, accountHeader?: string): string[] => {
  const headers = { host: 'gate.test', 'x-api-key': 't' };
  const request = { rawHeaders, headers, socket: { remoteAddress: '10.0.0.1' } };
  const exchange = createExchange('id-1', request as unknown as IncomingMessage, {} as never, false);
  if (accountHeader !== undefined) {
    const source = { place: 'header' as const, name: accountHeader };
    exchange.route = { name: 'GET /x', source, isPublic: false, idempotent: undefined };
  }
  return requestFields(exchange, listed);
};

/** Fields of a response with status 200 and id `id-1`, as the client gets them. */
const answered = (raw: string[], gateFields: Record<string, string> = {}, isLimited = false, status = 200): string[] =>
  answerFields(raw, { status, id: 'id-1', gateFields, isLimited });

/** What the gateway adds to a request. */
const ADDED = [
  'x-forwarded-for',
  '10.0.0.1',
  'x-forwarded-host',
  'gate.test',
  'x-forwarded-proto',
  'http',
  'x-request-id',
  'id-1',
];

describe('the fields of the forwarded request', () => {
  it("are the client's, in order and with duplicates", () => {
    expect(forwarded(['A', '1', 'B', '2', 'a', '3'])).toEqual(['A', '1', 'B', '2', 'a', '3', ...ADDED]);
  });

  it('do not include hop-by-hop fields and the API key', () => {
    const raw = ['Host', 'x', 'X-Api-Key', 't', 'Connection', 'close, X-Named', 'x-named', '1', 'TE', 'trailers'];
    expect(forwarded([...raw, 'Expect', '100-continue', 'Upgrade', 'h2c', 'X-Request-ID', 'mine'])).toEqual(ADDED);
  });

  it('include the content-length even if the Connection header names it', () => {
    expect(forwarded(['Connection', 'content-length', 'Content-Length', '3'])).toEqual([
      'Content-Length',
      '3',
      ...ADDED,
    ]);
  });

  it('append to the x-forwarded fields of other proxies', () => {
    const fields = forwarded([
      'X-Forwarded-For',
      '1.1.1.1',
      'x-forwarded-for',
      '2.2.2.2',
      'X-Forwarded-Proto',
      'https',
    ]);
    expect(fields.slice(0, 6)).toEqual([
      'x-forwarded-for',
      '1.1.1.1, 2.2.2.2, 10.0.0.1',
      'x-forwarded-host',
      'gate.test',
      'x-forwarded-proto',
      'https, http',
    ]);
  });
});

describe('fields that an upstream may obey', () => {
  it.each([
    'X-HTTP-Method-Override',
    'X-HTTP-Method',
    'X-Method-Override',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-URI',
    'X-Forwarded-Prefix',
    'X-Forwarded-Path',
    'X-Forwarded-Uri',
    'X-Forwarded-Method',
    'X-Forwarded-Port',
    'X-Forwarded-Server',
    'X-Forwarded-Ssl',
    'X-Real-IP',
    'X-Client-IP',
    'Forwarded',
    'True-Client-IP',
    'CF-Connecting-IP',
    'X-Middleware-Subrequest',
    'Proxy',
    'X_API_KEY',
    'X_Forwarded_For',
    'x_request_id',
    'Idempotency_Key',
    'X.Real.IP',
  ])('%s is not forwarded', (name) => {
    expect(forwarded([name, '1', 'X-Other', '2', name.toLowerCase(), '3'])).toEqual(['X-Other', '2', ...ADDED]);
  });

  it('are forwarded if they are listed', () => {
    const raw = ['X-Real-IP', '1', 'forwarded', 'for=1', 'my_field', '2', 'X-Client-IP', '3'];
    expect(forwarded(raw, new Set(['x-real-ip', 'forwarded', 'my_field']))).toEqual([...raw.slice(0, 6), ...ADDED]);
  });

  it("are forwarded if the route's account is in them, because the upstream must act for the charged account", () => {
    expect(forwarded(['X_Account', '1', 'X_Other', '2'], NONE, 'x_account')).toEqual(['X_Account', '1', ...ADDED]);
  });
});

it('the fields of a request without Host, whose connection is lost, include only what is known', () => {
  const rawHeaders = ['X-Forwarded-Host', '', 'X-Forwarded-For', '1.1.1.1'];
  const request = { rawHeaders, headers: {}, socket: { remoteAddress: undefined } };
  const exchange = createExchange('id-1', request as unknown as IncomingMessage, {} as never, false);
  expect(requestFields(exchange, NONE)).toEqual([
    'x-forwarded-for',
    '1.1.1.1',
    'x-forwarded-proto',
    'http',
    'x-request-id',
    'id-1',
  ]);
});

describe('the fields of the response', () => {
  const raw = [
    'Set-Cookie',
    'a',
    'Set-Cookie',
    'b',
    'X-RateLimit-Limit',
    '7',
    'RateLimit',
    'r',
    'X-Request-Id',
    'theirs',
  ];

  it('are passed on if the route is not limited, except the request id', () => {
    expect(answered(raw)).toEqual([...raw.slice(0, 8), 'x-request-id', 'id-1']);
  });

  it('never include the idempotency marks, which only the gateway may send', () => {
    const marks = ['Idempotency-Replayed', 'true', 'idempotency-status', 'bypassed'];
    expect(answered(marks)).toEqual(['x-request-id', 'id-1']);
  });

  it("are replaced by the gate's if the route is limited", () => {
    const fields = answered(raw, { 'x-ratelimit-limit': '10' }, true);
    expect(fields).toEqual([...raw.slice(0, 4), 'RateLimit', 'r', 'x-ratelimit-limit', '10', 'x-request-id', 'id-1']);
    expect(answered(raw, { ratelimit: 'gate' }, true)).not.toContain('r');
  });

  it('are dropped if they are not valid HTTP', () => {
    expect(answered(['a b', '1', 'constructor', 'k', 'c', 'x\u0001', 'd', '\u00e9'])).toEqual([
      'constructor',
      'k',
      'd',
      '\u00e9',
      'x-request-id',
      'id-1',
    ]);
  });
});
