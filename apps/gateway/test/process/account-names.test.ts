/** Names of accounts never collide with one another, and none of them breaks anything. */
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, ratesOf } from '../support/gateway.ts';

const LONG = 'x'.repeat(6_000);
const names = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'prototype',
  'a b',
  'a%20b',
  'é',
  'e\u0301',
  '日本語',
  '🔑',
  'a:b',
  'a|b',
  'a,b',
  'a;b',
  'a&b=c',
  'a+b',
  '{a}',
  '*',
  ':account_id',
  'a.b',
  `${LONG}1`,
  `${LONG}2`,
];

const { upstream, gateway } = await gatewayForFile(configOf, {
  accounts: [...names, 'a/b', 'a\\b', '..'].map((id) => ({ id, application: 'app_1', provider: 'mock' })),
  // A literal '__proto__' in source would set the prototype; JSON.parse makes it a property, as in a file.
  limits: JSON.parse('{"default":{"allMethods":["2/1m"]},"accounts":{"__proto__":{"allMethods":["1/1m"]}}}'),
});

const byQuery = (id: string) => gateway.ask('GET', `/api/v1/chats?account_id=${encodeURIComponent(id)}`);
const byPath = (id: string) => gateway.ask('GET', `/api/v1/accounts/${encodeURIComponent(id)}/chats`);

describe('an account in the query', () => {
  it('every name has its own allowance', async () => {
    for (const id of names) {
      const expected = id === '__proto__' ? [1] : [2, 2];
      for (const [i, limit] of expected.entries()) {
        const reply = await byQuery(id);
        expect({ id, status: reply.status, ...ratesOf(reply) }).toMatchObject({
          id,
          status: 200,
          limit,
          remaining: limit - 1 - i,
        });
      }
      expectProblem(await byQuery(id), 429, 'api/too_many_requests');
    }
  });

  it('a separator that a path may not have is allowed in a query', async () => {
    for (const id of ['a/b', 'a\\b', '..']) expect((await byQuery(id)).status).toBe(200);
  });

  it('a name is not trimmed, folded or decoded twice', async () => {
    for (const id of [' a b', 'A b', 'CONSTRUCTOR', 'a%2520b', 'valueOf', '__PROTO__', 'É', LONG]) {
      expectProblem(await byQuery(id), 404, 'errors/invalid_resource_identifier');
    }
  });
});

describe('an account in the path', () => {
  it('every name has its own allowance', async () => {
    for (const id of names) {
      expect({ id, status: (await byPath(id)).status }).toEqual({ id, status: 200 });
    }
    for (const id of names.filter((name) => name !== '__proto__')) {
      expect(ratesOf(await byPath(id))).toMatchObject({ limit: 2, remaining: 0 });
    }
    expectProblem(await byPath('__proto__'), 429, 'api/too_many_requests');
  });

  it('the same account, encoded in another way, uses the same allowance', async () => {
    const path = '/api/v1/accounts/%5f_proto%5F_/chats';
    expectProblem(await gateway.ask('GET', path), 429, 'api/too_many_requests');
  });
});

it('an account in a header: printable names, unchanged', async () => {
  for (const id of ['__proto__', 'constructor', 'a b', 'a%20b', 'a/b', `${LONG}1`]) {
    expect((await gateway.ask('POST', '/api/v1/messages', { 'x-account-id': id })).status).toBe(200);
  }
});

it('a name that cannot be decoded is refused, and the process goes on', async () => {
  const before = upstream.seen.length;
  for (const path of ['/api/v1/accounts/%zz/chats', '/api/v1/accounts/%ff%fe/chats', '/api/v1/accounts/%/chats']) {
    const { status } = await gateway.ask('GET', path);
    expect([400, 404, 422]).toContain(status);
  }
  const { status } = await gateway.ask('GET', '/api/v1/chats?account_id=%zz');
  expect([400, 404, 422]).toContain(status);
  expect(upstream.seen).toHaveLength(before);
  expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
});
