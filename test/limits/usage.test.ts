/** S14: `usage` shows every window of an account, and changes nothing. */
import { expect, it } from 'vitest';
import { createLimiter, type Limiter, type LimiterOptions } from '../../src/index.ts';
import { createSharedLimits } from '../../src/shared-limits/create-shared-limits.ts';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { windowSetFrom } from '../support/window-set.ts';

const start = (limits: LimiterOptions['limits']): Limiter =>
  createLimiter({ store: createMemoryStore({ clock: createFakeClock(1_000) }), limits, validate: false });

/** Each route as `remaining/max` of its windows; the shared windows under `*`. */
async function usage(limiter: Limiter, subject: Partial<Parameters<Limiter['usage']>[0]> = {}) {
  const { routes, shared } = await limiter.usage({ account: 'a', ...subject });
  const text = (windows: typeof shared): string => windows.map(({ remaining, max }) => `${remaining}/${max}`).join(' ');
  return { ...Object.fromEntries(routes.map(({ route, windows }) => [route, text(windows)])), '*': text(shared) };
}

it('S34: a list has only windows that all routes share', async () => {
  const limiter = start(['5/1m', '90/1d']);
  expect(await usage(limiter)).toEqual({ '*': '5/5 90/90' });
  await limiter.consume({ account: 'a', cost: 2 });
  expect(await usage(limiter)).toEqual({ '*': '3/5 88/90' });
  expect(await usage(limiter, { account: 'b' })).toEqual({ '*': '5/5 90/90' });
  expect(await limiter.usage({ account: 'a' })).toEqual({
    routes: [],
    shared: [
      { limit: 'all-methods', max: 5, remaining: 3, resetMs: 60_000, durationMs: 60_000, startedAt: 1_000 },
      { limit: 'all-methods', max: 90, remaining: 88, resetMs: 86_400_000, durationMs: 86_400_000, startedAt: 1_000 },
    ],
  });
});

it('shows each route that the limits name, and the routes that the caller names', async () => {
  const limiter = start({ allMethods: ['9/1h'], routes: { 'POST /emails': ['3/1m'], 'GET /free': [] } });
  for (const route of ['POST /emails', 'GET /other']) await limiter.consume({ account: 'a', route });
  expect(await usage(limiter)).toEqual({ 'POST /emails': '2/3 8/9', 'GET /free': '9/9', '*': '' });
  const routes = ['GET /other', 'POST /emails', { route: 'GET /own', limits: ['4/1m'] }];
  const all = await limiter.usage({ account: 'a', routes });
  expect(all.routes.map(({ route }) => route)).toEqual(['POST /emails', 'GET /free', 'GET /other', 'GET /own']);
  expect(await usage(limiter, { routes })).toMatchObject({ 'GET /other': '8/9', 'GET /own': '4/4 9/9' });
});

it('takes the layers of the subject, adjustments included', async () => {
  const limiter = start({
    default: { allMethods: { windows: ['9/1h'], scope: 'account' } },
    plans: { pro: { routes: { 'POST /emails': ['30/1m'] } }, free: {} },
    accounts: { a: { routes: { 'GET /own': ['2/1m'] } } },
  });
  await limiter.consume({ account: 'a', route: 'GET /own', plan: 'pro' });
  expect(await usage(limiter, { plan: 'pro' })).toEqual({ 'GET /own': '1/2', 'POST /emails': '30/30', '*': '8/9' });
  expect(await usage(limiter, { plan: 'free' })).toEqual({ 'GET /own': '1/2', '*': '8/9' });
  limiter.adjust({ account: 'a', route: 'POST /calls' }, ['7/1m']);
  expect(await usage(limiter, { plan: 'free' })).toMatchObject({ 'POST /calls': '7/7' });
  await expect(limiter.usage({ account: 'a', plan: 'none' })).rejects.toMatchObject({ code: 'unknown_plan' });
});

it('works with functions of limits, also asynchronous ones', async () => {
  const asked: unknown[] = [];
  const limiter = start(async ({ account, route }) => {
    asked.push(route);
    if (account === 'bad') throw new Error('no such row');
    return account === 'list' ? ['5/1m'] : { routes: { 'POST /emails': ['3/1m'] } };
  });
  expect(await usage(limiter)).toEqual({ 'POST /emails': '3/3', '*': '' });
  expect(asked).toEqual([undefined, 'POST /emails']);
  expect(await usage(limiter, { account: 'list', routes: ['r'] })).toEqual({ r: '', '*': '5/5' });
  await expect(limiter.usage({ account: 'bad' })).rejects.toMatchObject({ code: 'invalid_option' });
  const perRoute = start(({ route }) => ({ allMethods: { windows: [`${route?.length ?? 1}/1m`], scope: 'account' } }));
  expect(await usage(perRoute, { routes: ['rr', 'rrr'] })).toEqual({ rr: '', rrr: '', '*': '2/2 3/3 1/1' });
});

it('works with shared limits, and with any other source', async () => {
  const base = { default: ['9/1h'], accounts: { a: { routes: { r: ['3/1m'] } } } };
  const limits = createSharedLimits({ base, adjustments: createMemoryAdjustments() });
  await limits.put({ account: 'a', route: 's' }, ['4/1m'], { by: 'jane', reason: 'INC-1' });
  expect(await usage(start(limits))).toEqual({ r: '3/3', s: '4/4', '*': '9/9' });
  const windowSet = () => windowSetFrom(['3/1m'], ['8/1m'], 'account');
  expect(await usage(start({ windowSet }), { routes: ['r'] })).toEqual({ r: '3/3', '*': '8/8' });
  expect(await usage(start({ windowSet, limitedRoutes: ['t'] }))).toEqual({ t: '3/3', '*': '8/8' });
  await limits.close();
});

it('refuses a bad subject, and says what is right', async () => {
  const limiter = start({ allMethods: ['5/1m'] });
  const fault = (subject: unknown) => limiter.usage(subject as never).then(String, (error) => error.message);
  expect(await fault({ account: 'a', route: 'r' })).toMatch(/^subject.route: unknown option: name it in routes/);
  expect(await fault({ account: 'a', routes: 'r' })).toMatch(/^subject.routes: must be a list of routes/);
  expect(await fault({ account: 'a', routes: [1] })).toMatch(/^subject.routes: must be a list of routes/);
  expect(await fault({ account: 'a', routes: [{}] })).toBe('route must be a string, got undefined');
  expect(await fault({ account: 1 })).toBe('account must be a string, got 1');
  expect(await fault(undefined)).toMatch(/^subject: must be a plain object/);
  await limiter.close();
  expect(await fault({ account: 'a' })).toMatch(/was closed/);
});
