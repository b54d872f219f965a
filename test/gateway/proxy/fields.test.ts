import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { readAccount } from '../../../src/gateway/admission/account-source.ts';
import { createExchange } from '../../../src/gateway/exchange/exchange.ts';
import type { Refusal } from '../../../src/gateway/exchange/refusal.ts';
import { answerFields, requestFields } from '../../../src/gateway/proxy/upstream-fields.ts';

const forwarded = (rawHeaders: string[]): string[] => {
  const request = { rawHeaders, headers: { host: 'gate.test' }, socket: { remoteAddress: '10.0.0.1' } };
  return requestFields(createExchange('id-1', request as unknown as IncomingMessage, {} as never, false));
};

/** Fields of a response with status 200 and id `id-1`, as the client gets them. */
const answered = (raw: string[], gateFields: Record<string, string> = {}, isLimited = false, status = 200): string[] =>
  answerFields(raw, { status, id: 'id-1', gateFields, isLimited });

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
    expect(answered(raw)).toEqual([...raw.slice(0, 8), 'x-request-id', 'id-1']);
  });

  it('never say that an outcome was kept, or not, which is ours alone to say', () => {
    const marks = ['Idempotency-Replayed', 'true', 'idempotency-status', 'bypassed'];
    expect(answered(marks)).toEqual(['x-request-id', 'id-1']);
  });

  it('give way to ours on a limited one', () => {
    const fields = answered(raw, { 'x-ratelimit-limit': '10' }, true);
    expect(fields).toEqual([...raw.slice(0, 4), 'RateLimit', 'r', 'x-ratelimit-limit', '10', 'x-request-id', 'id-1']);
    expect(answered(raw, { ratelimit: 'ours' }, true)).not.toContain('r');
  });

  it('are dropped where no header can hold them', () => {
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

describe('an account in the query', () => {
  const read = (query: string) =>
    readAccount({ place: 'query', name: 'a' }, {} as never, { path: '/', query } as never, {} as never);

  it.each([
    ['a=1', '1'],
    ['b=2&a=1&c', '1'],
    ['b=100%&a=1', '1'],
    ['b=x;y&a=1', '1'],
    ['a=x+y%20z=', 'x y z='],
    ['a=%C3%A9', 'é'],
  ])('%j is read as a form is', (query, account) => {
    expect(read(query)).toBe(account);
  });

  it.each([
    ['', 'is missing'],
    ['b=1', 'is missing'],
    ['a', 'is empty'],
    ['a=', 'is empty'],
    ['a=1&a=2', 'is given more than once'],
    ['%61=1&a=%32', 'is given more than once'],
    ['a=%zz', 'malformed percent-encoding'],
    ['%zz=1&a=1', 'malformed percent-encoding'],
    ['a=1;b=2', 'a semicolon'],
  ])('%j is refused', (query, why) => {
    expect((read(query) as Refusal).problem('r')).toMatchObject({ status: 422, detail: expect.stringContaining(why) });
  });

  // Each of them is the account to some server: PHP, Go, .NET, qs, or whoever takes a semicolon for the end of a pair.
  it.each(['A=2', 'a[]=2', 'a%5B%5D=2', 'a[0]=2', 'a%00=2', '%20a=2', 'b=c;a=2', 'b;a=2'])(
    'beside %j it cannot be told',
    (other) => {
      for (const query of [`a=1&${other}`, `${other}&a=1`])
        expect((read(query) as Refusal).problem('r')).toMatchObject({
          status: 422,
          detail: expect.stringMatching(/query/),
        });
    },
  );
});
