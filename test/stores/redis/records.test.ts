import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import type { Decision } from '../../../src/core/decision.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { claimKey, createKeyNames } from '../../../src/stores/redis/keys.ts';
import { createRedisStore, type RedisStore } from '../../../src/stores/redis/limits.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const redis = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());

let stores = 0;
const windowSet = windowSetFrom(['2/4s'], ['9/1h']);
const HEAD = 'r4000a3600000|';
const HOUR_MS = 3_600_000;

interface Subject {
  readonly store: RedisStore;
  readonly errors: Error[];
  nameOf(account: string): string;
}

function connect(): Subject {
  const prefix = `records-${process.pid}-${stores++}`;
  const names = createKeyNames(prefix);
  const errors: Error[] = [];
  const onError = (error: unknown): void => void errors.push(error as Error);
  const store = createRedisStore(redis, { prefix, deadlineMs: 10_000, onStoreFailure: 'refuse', onError });
  return { store, errors, nameOf: (account) => names.record(account, 'r') };
}

/** A record as the script writes it: its head, then start and count of each window. */
function record(...numbers: number[]): Buffer {
  return Buffer.concat([Buffer.from(HEAD), Buffer.from(Float64Array.from(numbers).buffer)]);
}

async function serverNow(): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

const settled = (promises: readonly unknown[]) => Promise.allSettled(promises.map((each) => Promise.resolve(each)));

describe("the server's clock was set back", () => {
  it.each([1_000, HOUR_MS])(
    'S15: by %i ms: no wait is longer than the window, and each window starts again once',
    async (ms) => {
      const { store, nameOf } = connect();
      for (const requests of [1, 2]) {
        const account = `a${requests}`;
        const future = (await serverNow()) + ms;
        await redis.set(nameOf(account), record(future, 2, future, 2), 'PX', 2 * HOUR_MS);
        const decisions = await Promise.all(
          Array.from({ length: requests }, () => store.consume(account, 'r', windowSet, 1) as Promise<Decision>),
        );
        for (const { accepted, shown } of decisions) {
          expect(accepted).toBe(true);
          expect(shown?.resetMs).toBeLessThanOrEqual(HOUR_MS);
        }
        const rest = (await settled(Array.from({ length: 3 }, () => store.consume(account, 'r', windowSet, 1)))) as {
          value: Decision;
        }[];
        expect(rest.filter(({ value }) => value.accepted)).toHaveLength(2 - requests);
        expect(rest.at(-1)?.value.shown?.resetMs).toBeLessThanOrEqual(4_000);
      }
    },
  );

  it('S13, S15: a charge to a window whose start is in the future is not refunded', async () => {
    const { store, nameOf } = connect();
    const decision = await store.consume('a', 'r', windowSet, 1);
    const [route, all] = decision.trace;
    const moved = record((route?.startedAt as number) + HOUR_MS, 1, (all?.startedAt as number) + HOUR_MS, 1);
    await redis.set(nameOf('a'), moved);
    expect(await store.settle(decision, 0)).toBe(false);
    expect((await store.peek('a', 'r', windowSet)).map(({ remaining }) => remaining)).toEqual([2, 9]);
  });

  it('S13: settling keeps the expiry, and a count is at most the largest safe integer', async () => {
    const { store, nameOf } = connect();
    const [first, second] = [await store.consume('a', 'r', windowSet, 1), await store.consume('a', 'r', windowSet, 1)];
    const expiry = await redis.pexpiretime(nameOf('a'));
    expect(await store.settle(first, Number.MAX_SAFE_INTEGER)).toBe(true);
    expect(await store.settle(second, Number.MAX_SAFE_INTEGER)).toBe(true);
    const starts = first.trace.map(({ startedAt }) => startedAt as number);
    const full = record(starts[0] as number, Number.MAX_SAFE_INTEGER, starts[1] as number, Number.MAX_SAFE_INTEGER);
    expect([await redis.getBuffer(nameOf('a')), await redis.pexpiretime(nameOf('a'))]).toEqual([full, expiry]);
    // The record is still valid.
    expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
  });
});

const NAN = Number.NaN;
const NOW = 1_000_000_000_000;
const POISON: readonly [string, (key: string) => Promise<unknown>][] = [
  ['a count that is NaN', (key) => redis.set(key, record(NOW, NAN, NOW, 1))],
  ['a count that is NaN, in the last window', (key) => redis.set(key, record(NOW, 1, NOW, NAN))],
  ['a negative count', (key) => redis.set(key, record(NOW, -1, NOW, 1))],
  ['a count of 1.5', (key) => redis.set(key, record(NOW, 1.5, NOW, 1))],
  ['an infinite count', (key) => redis.set(key, record(NOW, Number.POSITIVE_INFINITY, NOW, 1))],
  ['a start of 10^300', (key) => redis.set(key, record(1e300, 1, NOW, 1))],
  ['a start that is NaN', (key) => redis.set(key, record(NAN, 1, NOW, 1))],
  ['a start that is not whole', (key) => redis.set(key, record(NOW + 0.5, 1, NOW, 1))],
  ['a start that is infinite', (key) => redis.set(key, record(Number.NEGATIVE_INFINITY, 1, NOW, 1))],
  [
    'another head, and a start of 10^300',
    (key) => redis.set(key, Buffer.concat([Buffer.from('r4000|'), record(1e300, 1).subarray(HEAD.length)])),
  ],
  [
    'another head, and a count that is NaN',
    (key) => redis.set(key, Buffer.concat([Buffer.from('r4000|'), record(NOW, NAN).subarray(HEAD.length)])),
  ],
  ['another type', (key) => redis.rpush(key, 'x')],
];

describe("a limiter's record that headgate did not write", () => {
  it.each(POISON)(
    '%s: it fails alone, in a call with others and by itself, and nothing is written',
    async (_, poison) => {
      const { store, errors, nameOf } = connect();
      await poison(nameOf('bad'));
      const before = await redis.dump(nameOf('bad'));
      const accounts = ['a', 'b', 'bad', 'c'];
      const outcomes = await settled(accounts.map((account) => store.consume(account, 'r', windowSet, 1)));
      expect(store.stats().calls).toBe(1);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      for (const outcome of outcomes)
        if (outcome.status === 'fulfilled') expect(outcome.value).toMatchObject({ accepted: true, degraded: false });
      const alone = await settled([store.consume('bad', 'r', windowSet, 1), store.peek('bad', 'r', windowSet)]);
      for (const outcome of [outcomes[2], ...alone]) {
        if (outcome?.status !== 'rejected') throw new Error('it must fail');
        expect(isHeadgateError(outcome.reason, 'store_unavailable')).toBe(true);
        expect((outcome.reason as Error).message).toContain(nameOf('bad'));
      }
      expect(errors).toHaveLength(3);
      expect(await redis.dump(nameOf('bad'))).toEqual(before);
      // However often it is asked for, the others are served.
      for (let i = 0; i < 10; i++) await settled([store.consume('bad', 'r', windowSet, 1)]);
      expect(store.stats().breaker).toBe('closed');
      expect((await store.peek('a', 'r', windowSet)).map(({ remaining }) => remaining)).toEqual([1, 8]);
    },
  );

  it('a refund of a count that is NaN fails, and writes nothing', async () => {
    const { store, nameOf } = connect();
    const decision = await store.consume('a', 'r', windowSet, 1);
    const starts = decision.trace.map(({ startedAt }) => startedAt as number);
    await redis.set(nameOf('a'), record(starts[0] as number, NAN, starts[1] as number, 1));
    const before = await redis.dump(nameOf('a'));
    const [outcome] = await settled([store.settle(decision, 0)]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'store_unavailable' } });
    expect(await redis.dump(nameOf('a'))).toEqual(before);
  });
});

const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;
const CLAIM_POISON: readonly [string, (key: string) => Promise<unknown>][] = [
  ...[
    ['generation', '9007199254740991'],
    ['generation', '99999999999999999'],
    ['keptUntil', '99999999999999999'],
    ['leaseUntil', 'NaN'],
    ['leaseUntil', '1e300'],
    ['fingerprint', '~not JSON'],
  ].map(([field, value]): [string, (key: string) => Promise<unknown>] => [
    `${field} ${value}`,
    (key) => redis.hset(key, field as string, value as string),
  ]),
  ['a list', async (key) => [await redis.del(key), await redis.rpush(key, 'x')]],
  ['a text', (key) => redis.set(key, 'free')],
  ['a released claim without a fingerprint', (key) => redis.set(key, 'free|1|99999999999999|')],
  ['a released claim whose generation is not a number', (key) => redis.set(key, 'free|x|9999999999999|=f')],
  ['a released claim that expires at 10^17', (key) => redis.set(key, 'free|1|100000000000000000|=f')],
  ['a released claim with an unreadable fingerprint', (key) => redis.set(key, 'free|1|9999999999999|~')],
];

describe('a claim that headgate did not write', () => {
  it.each(CLAIM_POISON)('%s: it fails alone, in a call with others and by itself', async (_, poison) => {
    const prefix = `claims-${process.pid}-${stores++}`;
    const errors: unknown[] = [];
    const store = createRedisClaimStore(redis, { prefix, deadlineMs: 10_000, onError: (error) => errors.push(error) });
    const idOf = (key: string) => ({ scope: 'app', key });
    await store.begin(idOf('bad'), begin);
    const key = claimKey(prefix, 'app', 'bad');
    await poison(key);
    const before = await redis.dump(key);
    const other = { ...begin, token: 'b', fingerprint: 'g' };
    const outcomes = await settled(['a', 'bad', 'b'].map((each) => store.begin(idOf(each), other)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    for (let i = 0; i < 10; i++) {
      const [alone] = await settled([store.begin(idOf('bad'), other)]);
      if (alone?.status !== 'rejected') throw new Error('it must fail');
      expect(isHeadgateError(alone.reason, 'store_unavailable')).toBe(true);
      expect((alone.reason as Error).message).toContain(key);
    }
    expect(store.stats().breaker).toBe('closed');
    expect(errors).toHaveLength(11);
    expect(await redis.dump(key)).toEqual(before);
  });
});

describe('a released claim', () => {
  it('I6: is one short string: its fingerprint, its generation and its expiry', async () => {
    const prefix = `released-${process.pid}`;
    const store = createRedisClaimStore(redis, { prefix, deadlineMs: 10_000 });
    const key = claimKey(prefix, 'app', 'k');
    const fingerprint = `multipart:${'0123456789abcdef'.repeat(12)}`;
    const id = { scope: 'app', key: 'k' };
    await store.begin(id, { ...begin, fingerprint });
    const held = (await redis.memory('USAGE', key)) as number;
    await store.abandon(id, { ...common, fingerprint, generation: 1, releasedRetentionMs: 5_000 });
    expect(await redis.get(key)).toMatch(new RegExp(`^free\\|1\\|\\d+\\|=${fingerprint}$`));
    expect(await redis.pttl(key)).toBeLessThanOrEqual(5_000);
    const released = (await redis.memory('USAGE', key)) as number;
    expect(released).toBeLessThan(held / 2);
    expect(await store.begin(id, { ...begin, token: 'b', fingerprint })).toMatchObject({ generation: 2 });
    expect(await redis.type(key)).toBe('hash');
    expect(await redis.pttl(key)).toBeGreaterThan(50_000);
  });
});
