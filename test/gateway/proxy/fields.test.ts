import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createExchange } from '../../../src/gateway/exchange/exchange.ts';
import { answerFields, requestFields } from '../../../src/gateway/proxy/upstream-fields.ts';

const forwarded = (rawHeaders: string[]): string[] => {
  const request = { rawHeaders, headers: { host: 'gate.test' }, socket: { remoteAddress: '10.0.0.1' } };
  return requestFields(createExchange('id-1', request as unknown as IncomingMessage, {} as never, false));
};

const OURS = [
  'x-forwarded-for',
  '10.0.0.1',
  'x-forwarded-host',
  'gate.test',
  'x-forwarded-proto',
  'http',
  'x-request-id',
  'id-1',
];

describe('of the forwarded request', () => {
  it('are those that came, in order, duplicates kept', () => {
    expect(forwarded(['A', '1', 'B', '2', 'a', '3'])).toEqual(['A', '1', 'B', '2', 'a', '3', ...OURS]);
  });

  it('lack what is of this connection, and the key', () => {
    const raw = ['Host', 'x', 'X-Api-Key', 't', 'Connection', 'close, X-Named', 'x-named', '1', 'TE', 'trailers'];
    expect(forwarded([...raw, 'Expect', '100-continue', 'Upgrade', 'h2c', 'X-Request-ID', 'mine'])).toEqual(OURS);
  });

  it('cannot lose their length to the Connection header', () => {
    expect(forwarded(['Connection', 'content-length', 'Content-Length', '3'])).toEqual([
      'Content-Length',
      '3',
      ...OURS,
    ]);
  });

  it('append to what proxies before us have said', () => {
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

it('of a request whose connection has gone, and that has no Host, tell only what is known', () => {
  const rawHeaders = ['X-Forwarded-Host', '', 'X-Forwarded-For', '1.1.1.1'];
  const request = { rawHeaders, headers: {}, socket: { remoteAddress: undefined } };
  const exchange = createExchange('id-1', request as unknown as IncomingMessage, {} as never, false);
  expect(requestFields(exchange)).toEqual([
    'x-forwarded-for',
    '1.1.1.1',
    'x-forwarded-proto',
    'http',
    'x-request-id',
    'id-1',
  ]);
});

describe('of the answer', () => {
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

  it('pass on an unlimited route, but for the id', () => {
    expect(answerFields(raw, { id: 'id-1' }, {}, false)).toEqual([...raw.slice(0, 8), 'x-request-id', 'id-1']);
  });

  it('never say that an outcome was kept, or not, which is ours alone to say', () => {
    const marks = ['Idempotency-Replayed', 'true', 'idempotency-status', 'bypassed'];
    expect(answerFields(marks, { id: 'i' }, {}, false)).toEqual(['x-request-id', 'i']);
  });

  it('give way to ours on a limited one', () => {
    const fields = answerFields(raw, { id: 'id-1' }, { 'x-ratelimit-limit': '10' }, true);
    expect(fields).toEqual([...raw.slice(0, 4), 'RateLimit', 'r', 'x-ratelimit-limit', '10', 'x-request-id', 'id-1']);
    expect(answerFields(raw, { id: 'id-1' }, { ratelimit: 'ours' }, true)).not.toContain('r');
  });

  it('are dropped where no header can hold them', () => {
    expect(
      answerFields(['a b', '1', 'constructor', 'k', 'c', 'x\u0001', 'd', '\u00e9'], { id: 'i' }, {}, false),
    ).toEqual(['constructor', 'k', 'd', '\u00e9', 'x-request-id', 'i']);
  });
});
