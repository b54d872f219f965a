import { describe, expect, it } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../../src/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { redisForFile } from '../../support/ioredis-for-file.ts';

const client = redisForFile();

let prefixes = 0;
/** Two limiters as two processes have them: they share only the server. */
function processes(given?: LimiterOptions['limits']): { readonly one: Limiter; readonly other: Limiter } {
  const prefix = `customer-plans-${process.pid}-${prefixes++}`;
  const limits = given ?? { default: { allMethods: ['2/1h'] }, plans: { free: {}, pro: { allMethods: ['4/1h'] } } };
  const create = () => createLimiter({ store: createRedisStore(client, { prefix, deadlineMs: 10_000 }), limits });
  return { one: create(), other: create() };
}

const SUBJECT = { account: 'acc', route: 'POST /emails' };

describe('in Redis', () => {
  it("S10: a customer's new plan applies at once, also while a rejection is cached, and keeps the count", async () => {
    const { one, other } = processes();
    const accepts = async (limiter: Limiter, plan: string) => (await limiter.consume({ ...SUBJECT, plan })).accepted;
    expect([await accepts(one, 'free'), await accepts(other, 'free')]).toEqual([true, true]);
    expect([await accepts(one, 'free'), await accepts(one, 'free')]).toEqual([false, false]);
    expect([await accepts(one, 'pro'), await accepts(other, 'pro'), await accepts(one, 'pro')]).toEqual([
      true,
      true,
      false,
    ]);
    expect(await accepts(one, 'free')).toBe(false);
  });

  it('S34: a list has one count per account for all routes, also without one, which all processes share', async () => {
    const { one, other } = processes(['3/1h', '5/1d']);
    const accepts = async (limiter: Limiter, route?: string) =>
      (await limiter.consume({ account: 'acc', route })).accepted;
    expect([await accepts(one, 'GET /'), await accepts(other), await accepts(one, 'POST /')]).toEqual([
      true,
      true,
      true,
    ]);
    expect([await accepts(one), await accepts(other, 'GET /'), await accepts(one, 'PUT /')]).toEqual([
      false,
      false,
      false,
    ]);
    expect((await other.peek({ account: 'acc' })).map(({ remaining }) => remaining)).toEqual([0, 2]);
    expect((await one.consume({ account: 'another' })).accepted).toBe(true);
    await one.reset({ account: 'acc' });
    expect(await accepts(other)).toBe(true);
  });

  it('S1: limits that are declared with a route have one count, which all processes share', async () => {
    const { one, other } = processes();
    const accepts = async (limiter: Limiter, limits: readonly string[]) =>
      (await limiter.consume({ ...SUBJECT, limits })).accepted;
    expect([await accepts(one, ['1/1m']), await accepts(other, ['1/1m'])]).toEqual([true, false]);
    expect((await one.peek({ ...SUBJECT, limits: ['1/1m'] })).map(({ remaining }) => remaining)).toEqual([0, 1]);
  });
});
