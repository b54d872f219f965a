import { describe, expect, it } from 'vitest';
import {
  createLimiter,
  isHeadgateError,
  type LimiterOptions,
  type LimitRequest,
  type Subject,
} from '../../src/index.ts';
import type { LayeredLimits } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createFakeTimers } from '../support/fake-timers.ts';

const EMAILS = 'POST /api/v1/emails';
const LIMITS: LayeredLimits = {
  default: { allMethods: ['6/1m'], routes: { [EMAILS]: ['3/1m'] } },
  plans: {
    free: {},
    pro: { allMethods: ['60/1m'], routes: { [EMAILS]: ['30/1m'] } },
    enterprise: { allMethods: ['600/1m'], routes: { [EMAILS]: [] } },
  },
  providers: { linkedin: { allMethods: ['20/1m'] } },
  accounts: { acc_vip: { routes: { [EMAILS]: ['50/1m'] } } },
};

function limiterOf(limits: LimiterOptions['limits'] = LIMITS) {
  const timers = createFakeTimers(0);
  const limiter = createLimiter({ store: createMemoryStore({ clock: timers }), limits });
  const maxes = (subject: Partial<Subject> = {}) =>
    limiter.windowSet({ account: 'a', route: EMAILS, ...subject }).windows.map(({ max }) => max);
  return { timers, limiter, maxes };
}

describe('the plan of a customer', () => {
  it('replaces the default limits, per limit', () => {
    const { maxes } = limiterOf();
    expect(maxes()).toEqual([3, 6]);
    expect(maxes({ plan: 'free' })).toEqual([3, 6]);
    expect(maxes({ plan: 'pro' })).toEqual([30, 60]);
    expect(maxes({ plan: 'enterprise' })).toEqual([600]);
    expect(maxes({ plan: 'pro', route: 'GET /' })).toEqual([60]);
  });

  it("gives way to the limits of the provider, which protect the account, and to the account's own", () => {
    const { maxes } = limiterOf();
    expect(maxes({ plan: 'pro', provider: 'linkedin' })).toEqual([30, 20]);
    expect(maxes({ plan: 'pro', provider: 'linkedin', account: 'acc_vip' })).toEqual([50, 20]);
    expect(maxes({ plan: 'enterprise', provider: 'other', account: 'acc_vip' })).toEqual([50, 600]);
  });

  it('replaces the limits that are declared with the route', () => {
    const { maxes } = limiterOf();
    expect(maxes({ plan: 'pro', limits: ['5/1m'] })).toEqual([30, 60]);
    expect(maxes({ plan: 'pro', limits: ['5/1m'], route: 'GET /' })).toEqual([5, 60]);
  });

  it('S10: another plan applies at once, and the count of the active window stays', async () => {
    const { limiter } = limiterOf();
    const subject = { account: 'a', route: 'GET /' };
    for (let i = 0; i < 6; i++) await limiter.consume({ ...subject, plan: 'free' });
    expect((await limiter.consume({ ...subject, plan: 'free' })).accepted).toBe(false);
    expect(await limiter.consume({ ...subject, plan: 'pro' })).toMatchObject({
      accepted: true,
      shown: { remaining: 53 },
    });
    expect((await limiter.consume({ ...subject, plan: 'free' })).accepted).toBe(false);
  });

  it('S10: adjust() changes a plan at once, and "recommended" brings its values back', () => {
    const { limiter, maxes } = limiterOf();
    limiter.adjust({ plan: 'pro' }, ['90/1m']);
    limiter.adjust({ plan: 'pro', route: EMAILS }, ['40/1m']);
    expect([maxes({ plan: 'pro' }), maxes({ plan: 'free' })]).toEqual([
      [40, 90],
      [3, 6],
    ]);
    limiter.adjust({ plan: 'pro' }, 'recommended');
    limiter.adjust({ plan: 'pro', route: EMAILS }, 'recommended');
    expect(maxes({ plan: 'pro' })).toEqual([30, 60]);
    limiter.adjust({ plan: 'new' }, ['9/1m']);
    expect(maxes({ plan: 'new' })).toEqual([3, 9]);
  });

  it('is an error if limits.plans does not have it, and charges nothing: a misspelt plan lifts no limit', async () => {
    const { limiter } = limiterOf({ default: {}, plans: { free: { allMethods: ['6/1m'] } } });
    for (const plan of ['Free', '', '__proto__', 'constructor']) {
      const asked = { account: 'a', route: EMAILS, plan };
      await expect(limiter.consume(asked)).rejects.toSatisfy((error) => isHeadgateError(error, 'unknown_plan'));
      await expect(limiter.peek(asked)).rejects.toThrow(
        `unknown plan ${JSON.stringify(plan)}: limits.plans has "free"`,
      );
      expect(() => limiter.consumeSync(asked)).toThrow(/unknown plan/);
    }
    const [window] = await limiter.peek({ account: 'a', route: EMAILS, plan: 'free' });
    expect(window?.remaining).toBe(6);
  });

  it('the error of an unknown plan names ten plans at most', () => {
    const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
    const plans = Object.fromEntries(names.map((name) => [name, {}]));
    const { limiter } = limiterOf({ default: { allMethods: ['1/1m'] }, plans });
    expect(() => limiter.windowSet({ account: 'a', route: 'r', plan: 'x' })).toThrow(
      /^unknown plan "x": .*"p8", "p9", …$/,
    );
    const { limiter: empty } = limiterOf({ default: { allMethods: ['1/1m'] }, plans: {} });
    expect(() => empty.windowSet({ account: 'a', route: 'r', plan: 'x' })).toThrow(/limits\.plans has none$/);
  });

  it('is an error too if limits.plans is missing, unless limits is a function', () => {
    const free = { allMethods: ['1/1m'] };
    const pro = { allMethods: ['9/1m'] };
    const { maxes, limiter } = limiterOf(({ plan }) => (plan === 'pro' ? pro : free));
    expect([maxes(), maxes({ plan: 'pro' })]).toEqual([[1], [9]]);
    limiter.adjust({ plan: 'pro' }, ['10/1m']);
    expect([maxes({ plan: 'free' }), maxes({ plan: 'pro' })]).toEqual([[1], [10]]);
    const flat = limiterOf({ allMethods: ['5/1m'] });
    expect(() => flat.maxes({ plan: 'pro' })).toThrow('unknown plan "pro": limits.plans has none');
    flat.limiter.adjust({ plan: 'pro' }, ['6/1m']);
    expect(flat.maxes({ plan: 'pro' })).toEqual([6]);
  });

  it.each([
    [{ plans: { free: { allMethods: ['1/1m'] } } }, /^limits\.default: must be given with plans: it has the limits of/],
    [{ default: {}, plans: { free: { allMethods: ['1'] } } }, /^limits\.plans\["free"\]\.allMethods\[0\]: a window is/],
    [{ default: {}, plans: [] }, /^limits\.plans: must be a plain object/],
    [{ default: {}, plan: {} }, /^limits\.plan: unknown option/],
  ])('limits of %j throw', (limits, message) => {
    expect(() => limiterOf(limits as never)).toThrow(message);
  });

  it.each([7, null, {}])('a plan that is %j is an error', async (plan) => {
    const { limiter } = limiterOf();
    await expect(limiter.consume({ account: 'a', route: 'r', plan: plan as never })).rejects.toThrow(
      /^plan must be a string/,
    );
    expect(() => limiter.adjust({ plan: 'pro', account: 'a' }, ['1/1m'])).toThrow(
      /only one of account, provider and pl/,
    );
    expect(() => limiter.adjust({ plan: 'pro' }, ['x'])).toThrow(/^limits\.plans\["pro"\]\.allMethods\[0\]/);
  });
});

describe('a worker', () => {
  it('waits by the plan of the customer, and by the limits of the route', async () => {
    const { timers, limiter } = limiterOf({ default: {}, plans: { free: { allMethods: ['1/1s'] }, pro: {} } });
    const worker = createJobWorker(limiter, { timers });
    const limits = ['2/1s'];
    const log: string[] = [];
    const acquire = (name: string, request: Omit<LimitRequest, 'route'>) =>
      worker.acquire({ route: name, ...request }).then(() => log.push(`${timers.now()} ${name}`));
    for (let i = 0; i < 3; i++) {
      void acquire('free', { account: 'a', plan: 'free' });
      void acquire('pro', { account: 'a', plan: 'pro', limits });
    }
    await timers.advance(5_000);
    expect(log.toSorted()).toEqual(['0 free', '0 pro', '0 pro', '1000 free', '1000 pro', '2000 free']);
    await expect(worker.acquire({ account: 'a', route: 'r', plan: 'Pro' })).rejects.toSatisfy((error) =>
      isHeadgateError(error, 'unknown_plan'),
    );
    await worker.close();
  });
});
