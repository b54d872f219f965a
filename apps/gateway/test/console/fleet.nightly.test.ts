/** One Redis, two gateways and a program with the library: what an operator changes at one, all of them obey. */

import { createLimiter } from 'headgate';
import { createRedisAdjustments, createRedisStore } from 'headgate/redis';
import { createSharedLimits, type SharedLimitsOptions } from 'headgate/shared-limits';
import { afterFile } from 'headgate-testbed/after-file';
import { eventually, pause } from 'headgate-testbed/raw-http';
import { redisForFile } from 'headgate-testbed/redis-for-file';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { ratesOf } from '../support/gateway.ts';
import { CHATS, EMAILS, LIMITS, startConsole, startGateway } from './support/console-gateway.ts';

const redis = await redisForFile();
const store = `redis://127.0.0.1:${redis.port}`;
/** More than a page of the list has. */
const plans = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`plan_${i}`, { allMethods: ['50/1m'] }]));
const limits = { ...LIMITS, plans };
const [atA, atB] = await Promise.all([startConsole({ store, limits }), startGateway({ store, limits })]);

/** Starts a program with the library. */
async function startLibrary(options: Partial<SharedLimitsOptions> = {}) {
  const client = new Redis({ port: redis.port, host: '127.0.0.1', enableOfflineQueue: false });
  client.on('error', () => {});
  await eventually(() => client.status === 'ready', 'the connection');
  const adjustments = createRedisAdjustments(client, { logger: false });
  const shared = createSharedLimits({ base: limits, adjustments, logger: false, ...options });
  afterFile(async () => {
    await shared.close();
    client.disconnect();
  });
  await shared.ready();
  return createLimiter({ store: createRedisStore(client, { logger: false }), limits: shared });
}
const library = await startLibrary();

/** Looks again and again until a limit is as wanted. Returns when that was. */
async function timeOf(isWanted: () => boolean | Promise<boolean>): Promise<number> {
  while (!(await isWanted())) await pause(20);
  return Date.now();
}
const ofB = async (path: string) => JSON.parse((await atB.admin('GET', path)).text);
const limitAtB = (target: Record<string, string>) => ofB(`/v1/limit?${new URLSearchParams(target)}`);
const sendToB = (route: string, account: string) => {
  const [method = '', path = ''] = route.split(' ');
  return atB.ask(method, `${path}?account_id=${account}`);
};

test('a change of a provider at one gateway: the other one and the library obey within a second', async () => {
  const subject = { account: 'acc_2', provider: 'linkedin', route: CHATS };
  const maxOfLibrary = () => library.windowSet(subject).windows.at(-1)?.max;
  expect([ratesOf(await sendToB(CHATS, 'acc_1')).limit, maxOfLibrary()]).toEqual([800, 800]);
  const page = await atA.open('#/limits');
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('button', { name: 'Change provider linkedin, all methods' }).click();
  await page.getByLabel('Window 2', { exact: true }).fill('700/1d');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByLabel('Reason').fill('INC-12');
  const apply = page.getByRole('button', { name: 'Apply' });
  const obeyed = Promise.all([
    timeOf(async () => (await limitAtB({ provider: 'linkedin' })).adjusted !== null),
    timeOf(() => maxOfLibrary() === 700),
  ]);
  await apply.click();
  const times = await obeyed;
  expect(ratesOf(await sendToB(CHATS, 'acc_1')).limit).toBe(700);
  expect((await library.consume(subject)).shown?.max).toBe(700);
  const { adjusted } = await limitAtB({ provider: 'linkedin' });
  expect(adjusted).toMatchObject({ windows: ['20/1m', '700/1d'], by: 'olaf', reason: 'INC-12' });
  for (const time of times) expect(time - Date.parse(adjusted.at)).toBeLessThan(1_000);
  await page.getByText('3 of 3 processes obey.').waitFor();
});

test('an account that is rejected: the operator raises its limit, and its next request passes', async () => {
  const statuses = [];
  for (let i = 0; i < 6; i++) statuses.push((await sendToB(EMAILS, 'acc_3')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
  const subject = { account: 'acc_3', provider: 'linkedin', route: EMAILS };
  expect((await library.consume(subject)).accepted).toBe(false);
  const page = await atA.open(`#/limits?${new URLSearchParams({ account: 'acc_3', route: EMAILS, edit: '1' })}`);
  await page.getByLabel('Window 1', { exact: true }).fill('10/1m');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByLabel('Reason').fill('INC-12');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('3 of 3 processes obey.').waitFor();
  expect((await sendToB(EMAILS, 'acc_3')).status).toBe(200);
  expect((await library.consume(subject)).accepted).toBe(true);
});

/** The address of the dialog for the limit of an account on a route that has none. */
const addressOf = (account: string) => `#/limits?${new URLSearchParams({ account, route: CHATS, edit: '1' })}`;

test('it names a process that does not obey yet', async () => {
  const page = await atA.open(addressOf('acc_1'));
  await page.getByLabel('Window 1', { exact: true }).fill('30/1m');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByLabel('Reason').fill('INC-12');
  await startLibrary({ instance: 'a-slow-process', refreshMs: 60_000 });
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText('3 of 4 processes obey.').waitFor();
  await page.getByText('These do not yet: a-slow-process.').waitFor();
});

test('Redis is frozen during a change: it may have landed, and later it shows what the limit is', async () => {
  const page = await atA.open(addressOf('acc_2'));
  await page.getByLabel('Window 1', { exact: true }).fill('40/1m');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByLabel('Reason').fill('INC-12');
  redis.freeze();
  try {
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('The change may have been stored').waitFor();
    await page.getByText('The limit is as before. While the store is away').waitFor();
  } finally {
    redis.thaw();
  }
  await expect
    .poll(
      async () => {
        await page.getByRole('button', { name: 'Read again' }).click();
        const { adjusted } = await limitAtB({ account: 'acc_2', route: CHATS });
        const text = await page.locator('dialog section').innerText();
        return adjusted === null
          ? text.includes('Set by an operator\nnothing')
          : text.includes('The limit has changed since you looked:') && text.includes('40/1m by olaf');
      },
      { timeout: 10_000 },
    )
    .toBe(true);
});
