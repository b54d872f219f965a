/** A send costs three statements, and one for its limits on a server: each is a trip to the server, or processor time in the embedded database. */
import { randomUUID } from 'node:crypto';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';

let sent: string[] = [];
const patched: (() => void)[] = [];
afterAll(() => {
  for (const restore of patched) restore();
});

/** Adds what each call of a method sends to the list. */
function count(prototype: object, name: string, textOf: (first: unknown) => string): void {
  const method: (...values: unknown[]) => unknown = Reflect.get(prototype, name);
  Reflect.set(prototype, name, function (this: object, ...values: unknown[]) {
    sent.push(textOf(values[0]));
    return method.apply(this, values);
  });
  patched.push(() => void Reflect.set(prototype, name, method));
}
count(pg.Client.prototype, 'query', (query) => (typeof query === 'string' ? query : (query as { text: string }).text));
count(PGlite.prototype, 'query', String);
count(PGlite.prototype, 'execProtocolStream', (message) => Buffer.from(message as Uint8Array).toString('latin1'));

/** Statements that come from time to time, and not with each send. */
const FROM_TIME_TO_TIME = /instances|api_keys|lanes|headgate.*(sweep|count)|"accounts"|webhook_endpoints"/;
/** The draft, and its delivery: the bookkeeping of the mock provider. */
const OF_MOCK = 2;

describe.each(['PGlite', 'PostgreSQL'] as const)('on %s', async (kind) => {
  const service = await startService({}, { kind });
  const application = await service.application();
  const client = clientOf(service.url, application.token);
  /** The embedded database counts in memory. */
  const ofLimits = kind === 'PostgreSQL' ? 1 : 0;
  const { id: account } = await linkAccount(service.rooms, application.id);
  for (const route of [undefined, 'POST /api/v1/emails'])
    await client('PUT', '/v2/limits', { account_id: account, ...(route && { route }), windows: ['1000/1m'] });

  /** The statements of one request. */
  async function statementsOf(key?: string): Promise<readonly string[]> {
    const email = { account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
    sent = [];
    const { status } = await client(
      'POST',
      '/api/v1/emails',
      email,
      key === undefined ? {} : { 'idempotency-key': key },
    );
    expect(status).toBe(201);
    return sent.filter((text) => !FROM_TIME_TO_TIME.test(text));
  }
  /** PGlite names a statement by its number, once it is prepared; so the fewest of several sends count. */
  async function fewest(keyOf: () => string | undefined): Promise<number> {
    const counts = [];
    for (let i = 0; i < 5; i++) counts.push((await statementsOf(keyOf())).length);
    return Math.min(...counts);
  }

  test('a send costs three statements beside those of its provider and its limits, with a key and without', async () => {
    expect(await fewest(() => randomUUID())).toBe(3 + ofLimits + OF_MOCK);
    expect(await fewest(() => undefined)).toBe(3 + ofLimits + OF_MOCK);
  });

  test('a replay costs one', async () => {
    const key = randomUUID();
    await statementsOf(key);
    expect(await fewest(() => key)).toBe(1);
  });

  test('sends at the same time share statements', async () => {
    await statementsOf();
    sent = [];
    const email = { account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
    const together = await Promise.all(Array.from({ length: 20 }, () => client('POST', '/api/v1/emails', email)));
    const answers = together.filter(({ status }) => status === 201).length;
    expect(answers).toBeGreaterThan(5);
    const claims = sent.filter((text) => text.includes('claims_') || text.includes('[{"id"')).length;
    expect(claims).toBeLessThan(3 * answers);
  });
});
