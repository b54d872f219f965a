import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { recommendedLimits } from 'headgate/recommended';
import { pino } from 'pino';
import { expect, inject, test } from 'vitest';
import { openServer } from '../../src/db/database.ts';
import { LimitBook, limitProvider } from '../../src/limits/book.ts';
import { LimitOverrides } from '../../src/limits/overrides.ts';
import { linkAccount } from '../support/accounts.ts';
import { startService } from '../support/service.ts';

const { application, rooms, db } = await startService();
const { overrides, book } = rooms;
const postgres = inject('postgres');
const route = 'POST /api/v1/emails';
const otherRoute = 'GET /other';

/** An application with a mock account, and its limits as headgate sees them. */
async function subject() {
  const { id: applicationId } = await application();
  const { id: account } = await linkAccount(rooms, applicationId);
  const provider = limitProvider(applicationId, 'mock');
  return { applicationId, account, provider, limits: () => book.of(account, provider) };
}

test('without adjustments, the recommended limits apply, and all accounts have one object', async () => {
  const [one, other] = [await subject(), await subject()];
  expect(one.limits()).toEqual(recommendedLimits.mock);
  expect(one.limits()).toBe(other.limits());
  for (const provider of Object.keys(recommendedLimits) as (keyof typeof recommendedLimits)[])
    expect(book.of('acc', limitProvider(one.applicationId, provider))).toMatchObject(recommendedLimits[provider]);
});

test('each limit comes from the account, else from the application, else from the recommendation', async () => {
  const { applicationId, account, limits } = await subject();
  const change = async (...given: [{ provider: string } | { accountId: string }, string | null, string[]]) => {
    await overrides.set(applicationId, given[0], given[1], given[2], 'key_1');
    await book.reload(applicationId);
  };
  await change({ accountId: account }, null, ['3/1m']);
  expect(limits()).toEqual({ allMethods: ['3/1m'], routes: recommendedLimits.mock.routes });
  await change({ provider: 'mock' }, null, ['7/1m']);
  await change({ provider: 'mock' }, route, ['5/1m', '50/1d']);
  expect(limits()).toEqual({ allMethods: ['3/1m'], routes: { [route]: ['5/1m', '50/1d'] } });
  expect(book.of('another', limitProvider(applicationId, 'mock'))).toMatchObject({ allMethods: ['7/1m'] });
  expect(book.of('another', limitProvider(applicationId, 'imap'))).toEqual(recommendedLimits.imap);
  await overrides.remove(applicationId, { accountId: account }, null);
  await book.reload(applicationId);
  expect(limits()).toEqual({ allMethods: ['7/1m'], routes: { [route]: ['5/1m', '50/1d'] } });
});

test('the object of an account stays the same until its own limits change', async () => {
  const { applicationId, account, limits } = await subject();
  const other = await linkAccount(rooms, applicationId);
  const otherLimits = () => book.of(other.id, limitProvider(applicationId, 'mock'));
  await overrides.set(applicationId, { accountId: account }, null, ['3/1m'], 'key_1');
  await book.reload(applicationId);
  const before = limits();
  await overrides.set(applicationId, { accountId: other.id }, null, ['4/1m'], 'key_1');
  await book.reload(applicationId);
  expect(limits()).toBe(before);
  const changedBefore = otherLimits();
  await overrides.set(applicationId, { accountId: other.id }, null, ['5/1m'], 'key_1');
  await book.reload(applicationId);
  expect(otherLimits()).not.toBe(changedBefore);
  expect(limits()).toBe(before);
});

test('a change keeps the counters of windows whose length stays', async () => {
  const { applicationId, account, provider } = await subject();
  const limiter = createLimiter({
    store: createMemoryStore(),
    limits: ({ account, provider = '' }) => book.of(account, provider),
  });
  const consume = () => limiter.consumeSync({ account, provider, route: otherRoute });
  const set = async (...windows: string[]) => {
    await overrides.set(applicationId, { accountId: account }, null, windows, 'key_1');
    await book.reload(applicationId);
  };
  await set('3/1m', '100/1d');
  for (let i = 0; i < 3; i++) expect(consume().accepted).toBe(true);
  expect(consume()).toMatchObject({ accepted: false, shown: { max: 3 } });
  await set('5/1m', '100/1d');
  expect(consume()).toMatchObject({ accepted: true, shown: { max: 100, remaining: 96 } });
  await set('4/1m', '100/1d');
  expect(consume()).toMatchObject({ accepted: false, shown: { max: 4, remaining: 0 } });
  await overrides.remove(applicationId, { accountId: account }, null);
  await book.reload(applicationId);
  expect(limiter.windowSet({ account, provider, route: otherRoute }).windows.map(({ max }) => max)).toEqual([
    60, 5_000,
  ]);
  expect(consume()).toMatchObject({ accepted: true, shown: { max: 5_000, remaining: 4_995 } });
  await limiter.close();
});

test('an operator can remove every limit: requests of the account are not limited, and headgate is told so', async () => {
  const { applicationId, account, provider, limits } = await subject();
  for (const removed of [null, route]) await overrides.set(applicationId, { accountId: account }, removed, [], 'key_1');
  await book.reload(applicationId);
  expect(limits()).toEqual({ unlimited: true });
  const limiter = createLimiter({
    store: createMemoryStore(),
    limits: ({ account, provider = '' }) => book.of(account, provider),
  });
  expect(limiter.consumeSync({ account, provider, route })).toMatchObject({ accepted: true, shown: undefined });
  await limiter.close();
});

test('a book that has not read the adjustments refuses to answer', async () => {
  const { account, provider } = await subject();
  const unread = new LimitBook(overrides, { log: pino({ level: 'silent' }) });
  expect(() => unread.of(account, provider)).toThrow('The limits are not loaded yet.');
  await unread.start();
  expect(unread.of(account, provider)).toEqual(recommendedLimits.mock);
  await unread.close();
});

test('while changes cannot be read, the limits of before apply, and the log says so once', async () => {
  const { applicationId, account, provider } = await subject();
  await overrides.set(applicationId, { provider: 'mock' }, null, ['3/1m'], 'key_1');
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
  const away = openServer(postgres.url, () => undefined);
  let isAway = false;
  /** Asks a server without these tables while `isAway`. */
  class UnsteadyOverrides extends LimitOverrides {
    override versions() {
      return isAway ? new LimitOverrides(away, Date.now).versions() : super.versions();
    }
  }
  const polling = new LimitBook(new UnsteadyOverrides(db, Date.now), { pollMs: 10, log });
  await polling.start();
  isAway = true;
  await expect.poll(() => lines.length).toBe(1);
  await overrides.set(applicationId, { provider: 'mock' }, null, ['4/1m'], 'key_1');
  expect(polling.of(account, provider).allMethods).toEqual(['3/1m']);
  isAway = false;
  await expect.poll(() => polling.of(account, provider).allMethods).toEqual(['4/1m']);
  await polling.close();
  await away.destroy();
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
    'changes of limits cannot be read',
    'changes of limits are read again',
  ]);
});

test('a provider without a recommendation has no limits to give', async () => {
  const { applicationId } = await subject();
  expect(() => book.of('acc', limitProvider(applicationId, 'unknown'))).toThrow('provider "unknown"');
});
