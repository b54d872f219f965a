/** S35: `charge` adds a cost to every window, whether it fits or not. */
import { expect, it } from 'vitest';
import { createAddressStore } from '../../src/address/store.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import { createLimiter, isHeadgateError, type LimiterOptions } from '../../src/index.ts';
import { decorateLimiter } from '../../src/limits/decorate-limiter.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { windowSetFrom } from '../support/window-set.ts';

const ERROR = new Error('the store is down');

const left = (windows: readonly { remaining: number }[]): number[] => windows.map(({ remaining }) => remaining);
const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(String, (error) => `${error.code}: ${error.message}`);

it('S35: fills a window, also beyond its max, and rejects nothing itself', async () => {
  const clock = createFakeClock(1_000);
  const limiter = createLimiter({ store: createMemoryStore({ clock }), limits: ['5/1m', '9/1h'] });
  expect(left(await limiter.charge({ account: 'a' }))).toEqual([4, 8]);
  expect(left(await limiter.charge({ account: 'a', cost: 7 }))).toEqual([0, 1]);
  expect(limiter.consumeSync({ account: 'a' })).toMatchObject({ accepted: false, shown: { durationMs: 60_000 } });
  clock.advance(60_000);
  expect(left(await limiter.charge({ account: 'a' }))).toEqual([4, 0]);
  expect(left(await limiter.peek({ account: 'b' }))).toEqual([5, 9]);
});

it('S35: takes the plan, the route and the limits of the subject, as consume does', async () => {
  const limits: LimiterOptions['limits'] = {
    default: ['9/1m'],
    plans: { pro: { routes: { 'POST /login': ['2/1m'] } } },
  };
  const limiter = createLimiter({ store: createMemoryStore(), limits });
  const subject = { account: 'a', route: 'POST /login', plan: 'pro' };
  expect(left(await limiter.charge({ ...subject, cost: 3 }))).toEqual([0, 6]);
  expect((await limiter.consume(subject)).shown?.limit).toBe('route');
  expect((await limiter.consume({ ...subject, route: 'GET /' })).accepted).toBe(true);
  const resolved = createLimiter({ limits: async () => ['3/1m'] });
  expect(left(await resolved.charge({ account: 'a' }))).toEqual([2]);
});

it('S35: bad requests charge nothing, and a store that cannot charge is an OptionError', async () => {
  const limiter = createLimiter({ limits: { allMethods: ['5/1m'] } });
  const subject = { account: 'a', route: 'r' };
  expect(await codeOf(limiter.charge({ ...subject, cost: 0 }))).toMatch(/^invalid_cost/);
  expect(await codeOf(limiter.charge({ account: 'a' }))).toMatch(/^invalid_subject: route/);
  expect(await codeOf(limiter.charge(undefined as never))).toMatch(/^invalid_option: subject/);
  expect(await codeOf(limiter.charge({ ...subject, groups: { g: 'x' } }))).toMatch(
    /^invalid_option: groups: must be absent/,
  );
  expect(left(await limiter.peek(subject))).toEqual([5]);
  const { consume, peek, settle, reset } = createMemoryStore() as never;
  const store = { synchronous: true, consume, peek, settle, reset } as never;
  expect(await codeOf(createLimiter({ store, limits: ['5/1m'] }).charge({ account: 'a' }))).toBe(
    'invalid_option: store: must have charge(): this store cannot charge, got an object',
  );
  await limiter.close();
  expect(await codeOf(limiter.charge(subject))).toMatch(/^closed/);
});

it('S18: a full memory store refuses the charge of a new account, and changes nothing', async () => {
  const limiter = createLimiter({ store: createMemoryStore({ maxKeys: 1 }), limits: ['5/1m', '9/1h'] });
  await limiter.charge({ account: 'a' });
  expect(await limiter.charge({ account: 'b' }).catch((error) => isHeadgateError(error, 'store_full'))).toBe(true);
  expect(left(await limiter.charge({ account: 'a' }))).toEqual([3, 7]);
});

it('S17, S35: during an outage the failure policy charges where it decides', () => {
  const windowSet = windowSetFrom(['20/1h']);
  const charge = (policy: Parameters<typeof createFailover>[0]) => {
    const failover = createFailover(policy);
    const windows = failover.charge('a', 'r', windowSet, 1, ERROR);
    return [left(windows), failover.decide('a', 'r', windowSet, 1, ERROR).shown?.remaining];
  };
  expect(charge('local')).toEqual([[19], 18]);
  expect(charge({ local: { share: 0.1 } })).toEqual([[1], 0]);
  expect(charge('admit')).toEqual([[], undefined]);
  expect(() => charge('refuse')).toThrow(ERROR);
});

it('S35: decorated stores and limiters pass it on, and an address in a network charges both', async () => {
  const store = createMemoryStore();
  const calls: unknown[] = [];
  const decorated = decorateStore(store, {
    charge:
      (charge) =>
      (...given) => {
        calls.push(given[0]);
        return charge(...given);
      },
  });
  const limiter = decorateLimiter(createLimiter({ store: decorated, limits: ['5/1m'] }), {});
  expect(left(await limiter.charge({ account: 'a' }))).toEqual([4]);
  expect(calls).toEqual(['a']);
  const [ofAddress, inNetwork] = [windowSetFrom(['5/1m']), windowSetFrom(['5/1m'], ['9/1m'], 'account')];
  const networkOf = (address: string) => (address.startsWith('2001:') ? '2001::/48' : undefined);
  const addresses = createAddressStore(store, { ofAddress, inNetwork, networkOf });
  expect(left((await addresses.charge?.('2001::1', '', ofAddress, 2)) ?? [])).toEqual([3, 7]);
  expect(left((await addresses.charge?.('192.0.2.1', '', ofAddress, 2)) ?? [])).toEqual([3]);
});

it('S27, S35: a shadow charges its candidate too, and a candidate that cannot counts as failed', async () => {
  const candidate = createMemoryStore();
  const limiter = withShadow(createLimiter({ limits: ['5/1m'] }), { limits: ['3/1m'], store: candidate });
  await limiter.charge({ account: 'a', cost: 3 });
  await limiter.shadow.idle();
  expect(limiter.consumeSync({ account: 'a' }).accepted).toBe(true);
  await limiter.shadow.idle();
  expect(limiter.shadow.figures().total).toMatchObject({ onlyCandidate: 1, failed: 0 });
  const { consume, peek, settle, reset } = candidate as never;
  const store = { synchronous: true, consume, peek, settle, reset } as never;
  const other = withShadow(createLimiter({ limits: ['5/1m'] }), { limits: ['3/1m'], store });
  await other.charge({ account: 'a' });
  await other.shadow.idle();
  expect(other.shadow.figures().total).toMatchObject({ failed: 1 });
});
