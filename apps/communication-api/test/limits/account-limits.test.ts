import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { recommendedLimits } from 'headgate/recommended';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { AccountLimits, limitProvider } from '../../src/limits/account-limits.ts';
import { linkAccount } from '../support/accounts.ts';
import { DATABASES } from '../support/databases.ts';
import { startService } from '../support/service.ts';

const route = 'POST /api/v1/emails';
const otherRoute = 'GET /other';
const silent = pino({ level: 'silent' });

const services = await Promise.all(
  DATABASES.map(async ([kind]) => ({ kind, service: await startService({}, { kind }) })),
);

describe.each(services)('limits in $kind', ({ service: { application, rooms, db } }) => {
  const { limits } = rooms;

  /** An application with a mock account, and its limits as headgate sees them. */
  async function subject() {
    const { id: applicationId } = await application();
    const { id: accountId } = await linkAccount(rooms, applicationId);
    const provider = limitProvider(applicationId, 'mock');
    const windows = (of = route, account = accountId) =>
      limits.shared.windowSet({ account, provider, route: of }).windows.map(({ max, limit }) => `${limit} ${max}`);
    const owner = { applicationId, provider: 'mock' };
    const put = (to: readonly string[] | null, of: string | null = null, given: object = { accountId }) =>
      limits.changeNow({ ...owner, ...given }, of, to, 'key_1');
    return { applicationId, accountId, provider, owner, windows, put };
  }

  test('without adjustments, the recommended limits apply, and all accounts have one object', async () => {
    const [one, other] = [await subject(), await subject()];
    const setOf = ({ accountId: account, provider }: typeof one) =>
      limits.shared.windowSet({ account, provider, route });
    expect(setOf(one)).toBe(setOf(other));
    for (const [provider, { allMethods, routes }] of Object.entries(recommendedLimits)) {
      const list = limits.list({ applicationId: one.applicationId, provider });
      expect(list).toMatchObject([
        { route: null, windows: allMethods, source: 'recommended', version: 0 },
        { route, windows: routes?.[route] ?? [], source: 'recommended', version: 0 },
      ]);
    }
    expect(() => limits.list({ applicationId: one.applicationId, provider: 'constructor' })).toThrow('"constructor"');
    expect(() => limits.shared.windowSet({ account: 'acc_1', route })).toThrow('without a provider');
  });

  test('an Outlook mailbox has at most four requests at the same time, also with adjusted limits', async () => {
    const { applicationId } = await subject();
    const provider = limitProvider(applicationId, 'outlook');
    const inFlight = () => limits.shared.windowSet({ account: 'acc_1', provider, route }).inFlight;
    expect(inFlight()).toEqual({ route: undefined, allMethods: 4 });
    await limits.changeNow({ applicationId, provider: 'outlook' }, null, ['7/1m'], 'key_1');
    expect(inFlight()).toEqual({ route: undefined, allMethods: 4 });
  });

  test('each limit comes from the account, else from the application, else from the recommendation', async () => {
    const { owner, accountId, windows, put } = await subject();
    await put(['3/1m']);
    expect(windows()).toEqual(['route 10', 'route 200', 'all-methods 3']);
    await put(['7/1m'], null, {});
    await put(['50/1d', '5/1m'], route, {});
    expect(windows()).toEqual(['route 5', 'route 50', 'all-methods 3']);
    expect(windows(route, 'another')).toEqual(['route 5', 'route 50', 'all-methods 7']);
    expect(limits.list({ ...owner, accountId })).toMatchObject([
      { windows: ['3/1m'], source: 'account', below: ['7/1m'] },
      { windows: ['5/1m', '50/1d'], source: 'application', version: 0, below: ['5/1m', '50/1d'] },
    ]);
    expect(limits.find(owner, route)).toMatchObject({ below: recommendedLimits.mock.routes?.[route] });
    await put(null);
    expect(windows(otherRoute)).toEqual(['all-methods 7']);
    expect(limits.find({ ...owner, accountId }, null)).toMatchObject({ source: 'application', version: 0 });
  });

  test('a change keeps the counters of windows whose length stays', async () => {
    const { accountId: account, provider, put } = await subject();
    const limiter = createLimiter({ store: createMemoryStore(), limits: limits.shared });
    const consume = () => limiter.consumeSync({ account, provider, route: otherRoute });
    await put(['3/1m', '100/1d']);
    for (let i = 0; i < 3; i++) expect(consume().accepted).toBe(true);
    expect(consume()).toMatchObject({ accepted: false, shown: { max: 3 } });
    await put(['5/1m', '100/1d']);
    expect(consume()).toMatchObject({ accepted: true, shown: { max: 100, remaining: 96 } });
    await put(['4/1m', '100/1d']);
    expect(consume()).toMatchObject({ accepted: false, shown: { max: 4, remaining: 0 } });
    await put(null);
    expect(consume()).toMatchObject({ accepted: true, shown: { max: 5_000, remaining: 4_995 } });
    await limiter.close();
  });

  test('an operator can remove every limit of an account', async () => {
    const { accountId: account, provider, put } = await subject();
    for (const removed of [null, route]) await put([], removed);
    const limiter = createLimiter({ store: createMemoryStore(), limits: limits.shared });
    expect(limiter.consumeSync({ account, provider, route })).toMatchObject({ accepted: true, shown: undefined });
    await limiter.close();
  });

  test('a change that is rolled back is never heard of, and the limits of a removed account are gone', async () => {
    const { applicationId, accountId, owner, windows, put } = await subject();
    const failed = db.transaction().execute(async (transaction) => {
      await limits.change({ ...owner, accountId }, null, ['3/1m'], { by: 'mbr_1' }, transaction);
      throw new Error('no audit');
    });
    await expect(failed).rejects.toThrow('no audit');
    await limits.refresh();
    expect(windows(otherRoute)).toEqual(['all-methods 60', 'all-methods 5000']);
    await put(['3/1m']);
    await put(['4/1m'], route);
    await rooms.accounts.remove(applicationId, accountId);
    await limits.refresh();
    expect(limits.shared.list().filter(({ target }) => target.account === accountId)).toEqual([]);
    await expect(put(['5/1m'])).rejects.toMatchObject({ status: 404 });
  });

  test('one application cannot use up the room of all', async () => {
    const [greedy, other] = [await subject(), await subject()];
    const before = limits.shared.list().length;
    const small = new AccountLimits(db, { log: silent, maxAdjustments: before + 6 });
    const accounts = [greedy.accountId];
    for (let i = 0; i < 5; i++) accounts.push((await linkAccount(rooms, greedy.applicationId, { name: `n${i}` })).id);
    const put = ({ owner }: typeof greedy, accountId: string) =>
      small.changeNow({ ...owner, accountId }, null, ['5/1m'], 'key_1');
    const results: unknown[] = [];
    for (const id of accounts) results.push(await put(greedy, id).catch(({ status }) => status));
    // It may have as many as are free.
    expect(results).toEqual([undefined, undefined, undefined, 422, 422, 422]);
    await put(other, other.accountId);
    await small.close();
  });
});
