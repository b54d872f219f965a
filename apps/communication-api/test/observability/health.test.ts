import { expect, test } from 'vitest';
import { Health, type HealthParts, statusOf } from '../../src/observability/health.ts';

const healthOf = (parts: Partial<HealthParts> = {}, checkMs?: number): Health =>
  new Health({ hasCurrentSchema: async () => true, redisAnswers: () => true, ...parts }, checkMs);

const runningOf = (parts?: Partial<HealthParts>, checkMs?: number): Health => {
  const health = healthOf(parts, checkMs);
  health.started();
  return health;
};

test('a process is ready from its start until it ends; it lives all the time', async () => {
  const health = healthOf();
  expect([await health.ready(), health.live()]).toEqual([{ status: 'starting' }, { status: 'ok' }]);
  health.started();
  expect(await health.ready()).toEqual({ status: 'ok', database: 'ok', schema: 'current', redis: 'ok' });
  health.drain();
  health.started();
  expect([await health.ready(), health.live()]).toEqual([{ status: 'draining' }, { status: 'draining' }]);
});

test('without its database it is not ready; without Redis it is', async () => {
  const away = async () => Promise.reject(new Error('ECONNREFUSED'));
  expect(await runningOf({ hasCurrentSchema: away }).ready()).toEqual({
    ...{ status: 'unready', database: 'away', redis: 'ok' },
  });
  expect(await runningOf({ hasCurrentSchema: async () => false }).ready()).toMatchObject({
    ...{ status: 'unready', schema: 'behind' },
  });
  expect(await runningOf({ redisAnswers: () => false }).ready()).toMatchObject({ status: 'degraded', redis: 'away' });
  expect(await runningOf({ redisAnswers: () => undefined }).ready()).toEqual({
    ...{ status: 'ok', database: 'ok', schema: 'current' },
  });
  const statuses = (['ok', 'degraded', 'starting', 'unready', 'draining'] as const).map((status) =>
    statusOf({ status }),
  );
  expect(statuses).toEqual([200, 200, 503, 503, 503]);
});

test('a database that does not answer is away, and checks at the same time ask it once', async () => {
  let asked = 0;
  const health = runningOf({ hasCurrentSchema: () => new Promise(() => void asked++) }, 20);
  const answers = await Promise.all([health.ready(), health.ready(), health.ready()]);
  expect(answers.map(({ database }) => database)).toEqual(['away', 'away', 'away']);
  expect(asked).toBe(1);
  await health.ready();
  expect(asked).toBe(2);
});

test('a process that begins to end during a check is not ready', async () => {
  const health = runningOf();
  const checking = health.ready();
  health.drain();
  expect(await checking).toEqual({ status: 'draining' });
});
