/** Two gateways with one Redis decide for others: whichever is asked, a claim and a receipt are the same. */
import { startRedis } from 'headgate-testbed/redis-server';
import { beforeAll, expect, it } from 'vitest';
import { DECISIONS, type DecidingGateway, startDeciding } from '../support/decisions.ts';
import { expectProblem, ratesOf, sha256, TOKEN } from '../support/gateway.ts';

type Redis = Awaited<ReturnType<typeof startRedis>>;
let redis: Redis;
let one: DecidingGateway;
let other: DecidingGateway;

beforeAll(async () => {
  redis = await startRedis();
  const config = {
    store: `redis://127.0.0.1:${redis.port}/0`,
    storeDeadlineMs: 5_000,
    onStoreFailure: 'refuse',
    keys: [{ sha256: sha256(TOKEN), name: 'first', application: 'app_1', role: 'service' }],
    routes: [{ route: 'POST /emails', idempotent: { waitMs: 0 } }],
    limits: { default: { allMethods: ['10/1h'] } },
  };
  [one, other] = await Promise.all([
    startDeciding({ ...config, decisions: DECISIONS }),
    startDeciding({ ...config, decisions: DECISIONS }),
  ]);
});

const mail = (key: string) => ({ route: 'POST /emails', idempotency: { key, request: { to: 'a@example.com' } } });
const decide = (gateway: DecidingGateway, key: string) => gateway.decide('/v1/decisions', mail(key));

it('I4, S37: one of them acquires, the other extends, completes and settles, and both replay', async () => {
  const first = await decide(one, 'k1');
  expect(first.value.outcome).toBe('accepted');
  const { claim, receipt } = first.value;
  expectProblem(await decide(other, 'k1'), 409, 'errors/conflict');
  expect((await other.decide('/v1/claims/extend', { claim })).status).toBe(200);
  const response = { status: 202, body: 'queued' };
  expect((await other.decide('/v1/claims/complete', { claim, response })).value.outcome).toBe('completed');
  expect((await one.decide('/v1/claims/complete', { claim, response })).value.outcome).toBe('completed');
  for (const gateway of [one, other])
    expect((await decide(gateway, 'k1')).value).toMatchObject({
      outcome: 'replayed',
      response: { status: 202, body: 'queued' },
    });
  expect((await other.decide('/v1/decisions/settle', { receipt, cost: 3 })).value).toEqual({ changed: true });
  expect((await one.decide('/v1/decisions/settle', { receipt, cost: 0 })).value).toEqual({ changed: false });
  expect(ratesOf(await decide(other, 'k2')).remaining).toBe(6);
});

it('I6: one of them acquires, the other abandons, and the first executes the retry', async () => {
  const { claim } = (await decide(one, 'k3')).value;
  expect((await other.decide('/v1/claims/abandon', { claim })).value).toEqual({ outcome: 'released' });
  expect((await decide(one, 'k3')).value).toMatchObject({ outcome: 'accepted', claim: expect.any(String) });
});

it('S17: while Redis is down, every request that needs it is a 503', async () => {
  const { claim, receipt } = (await decide(one, 'k4')).value;
  await redis.stop();
  const requests: [string, object][] = [
    ['/v1/decisions', { route: 'POST /emails' }],
    ['/v1/decisions', mail('k5')],
    ['/v1/decisions/settle', { receipt, cost: 0 }],
    ['/v1/claims/complete', { claim, response: { status: 200, body: '' } }],
    ['/v1/claims/extend', { claim }],
    ['/v1/claims/abandon', { claim }],
  ];
  for (const [path, json] of requests) expectProblem(await one.decide(path, json), 503, 'errors/service_unavailable');
});
