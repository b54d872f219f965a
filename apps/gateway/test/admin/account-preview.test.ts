/** What a change of limits would do to the accounts that were seen lately. */

import { createLimiter } from 'headgate';
import { createMemoryAdjustments, createMemoryStore } from 'headgate/memory';
import { createSharedLimits } from 'headgate/shared-limits';
import { longestHold } from 'headgate-testbed/longest-hold';
import { expect, it } from 'vitest';
import { previewAccounts } from '../../src/admin/account-preview.ts';
import { askOwn } from '../../src/admin/combined-figures.ts';
import type { AdminContext } from '../../src/admin/context.ts';
import { type FigureSources, ownFigures } from '../../src/admin/figures.ts';
import { Traffic } from '../../src/traffic/traffic.ts';

/** A slice takes 4 ms; the rest is for what cannot be cut. */
const MOST_MS = 20;
const ROUTES = Array.from({ length: 20 }, (_, i) => `GET /${i}`);

it('of 100 changes over 1,024 accounts, others run between its slices', async () => {
  const routes = Object.fromEntries(ROUTES.map((route) => [route, ['60/1m']]));
  const accounts = Object.fromEntries(
    Array.from({ length: 1_024 }, (_, i) => [`acc_${i}`, { allMethods: ['500/1m'], routes: { 'GET /0': ['5/1m'] } }]),
  );
  const base = { default: { allMethods: ['1000/1m'], routes }, accounts };
  const sharedLimits = createSharedLimits({ base, adjustments: createMemoryAdjustments() });
  const limits = createMemoryStore();
  const limiter = createLimiter({ store: limits, limits: sharedLimits, validate: false });
  const traffic = new Traffic();
  traffic.turn(true);
  for (const account of Object.keys(accounts)) {
    const decision = await limiter.consume({ account, route: 'GET /19' });
    traffic.onEvent({ type: 'decision', requestId: 'r', decision });
  }
  const known = { find: (id: string) => ({ id, application: 'app_1', scope: null }) };
  const parts = {
    accounts: () => known,
    config: () => ({ limits: { accounts } }),
    store: { limits },
    figures: askOwn(ownFigures({ traffic } as FigureSources)),
    sharedLimits,
  };
  // Those of the routes are about each account.
  const changes = [
    ...ROUTES.map((route) => ({ target: { route }, windows: ['1/1m'] })),
    ...Array.from({ length: 80 }, (_, i) => ({ target: { account: `acc_${i}` }, windows: ['1/1m'] })),
  ];
  const preview = () => previewAccounts(parts as unknown as AdminContext, changes);
  const runs = [await longestHold(preview), await longestHold(preview)] as const;
  const [{ result }] = runs;
  expect(result.accounts.affected).toBe(1_024);
  expect(result.now).toHaveLength(50);
  expect(result.now[0]).toMatchObject({ used: 1, max: 1, wouldReject: true });
  // The first run also compiles.
  expect(Math.min(...runs.map(({ ms }) => ms))).toBeLessThan(MOST_MS);
  await sharedLimits.close();
});
