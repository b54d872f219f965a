/** The wall clock of one machine of two jumps: nothing is sent twice, and no limit is lifted. */
import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { clientOf, inDays } from '../support/client.ts';
import { startCrashWorld } from '../support/crashes.ts';
import { runToEnd, startProcess } from '../support/service-process.ts';
import { steppedClock } from '../support/stepped-clock.ts';

const world = await startCrashWorld();
const clock = steppedClock();
const steadyEnvironment = world.environment;
const steppedEnvironment = { ...world.environment, ...clock.environment };
const [steady, stepped] = await Promise.all([startProcess(steadyEnvironment), startProcess(steppedEnvironment)]);
afterEach(() => clock.set('+0'));

const hourKey = world.headers({ account: '', key: '' })['x-api-key'] ?? '';
const created = { name: 'Long', expires_at: inDays(30), access: { type: 'global' } };
const { body: made } = await clientOf(steady.url, hourKey)('POST', '/v2/api-keys', created);
const token: string = made.api_key;

const newAccount = async (drafts: boolean): Promise<string> =>
  (await world.newEmail('mock', `${randomUUID()}@mock.test`, { drafts })).account;

/** Sends an email, which takes `ms` until the provider has it. */
async function send({ url }: { readonly url: string }, account_id: string, key: string, ms = 0) {
  const email = { account_id, to: [{ identifier: `delay.${ms}@mock.test` }], body: 'Hello' };
  const { status, body } = await clientOf(url, token)('POST', '/api/v1/emails', email, { 'idempotency-key': key });
  return { status, id: body.tracking_id as string | undefined };
}

const receivedBy = async (account: string): Promise<number> =>
  (await world.db.selectFrom('mock_messages').select('id').where('account_id', '=', account).execute()).length;

const stateOf = async (account: string): Promise<string | undefined> =>
  (await world.db.selectFrom('sends').select('state').where('account_id', '=', account).executeTakeFirst())?.state;

test('the doctor says so', async () => {
  clock.set('+1h');
  const { code, out } = await runToEnd(['doctor'], steppedEnvironment);
  expect(out).toMatch(/^wrong +clock: this machine is 3[56]\d\d\.\d s ahead of the database/m);
  expect(code).toBe(1);
});

test.each(['+2h', '-2h'])('%s: a used-up limit stays used up, there and back', async (offset) => {
  const account = await newAccount(true);
  await clientOf(stepped.url, hourKey)('PUT', '/v2/limits', { account_id: account, windows: ['2/1h'] });
  for (const key of ['a', 'b']) expect((await send(stepped, account, `${account} ${key}`)).status).toBe(201);
  for (const at of ['+0', offset, '+0']) {
    clock.set(at);
    expect((await send(stepped, account, randomUUID())).status, at).toBe(429);
  }
  // What was sent is known.
  expect((await send(stepped, account, `${account} a`)).status).toBe(201);
  expect(await receivedBy(account)).toBe(2);
});

test.each([
  ['+2h', true],
  ['-2h', true],
  ['+2h', false],
  ['-2h', false],
] as const)('%s: an email that another process is sending is not sent again (drafts: %s)', async (offset, drafts) => {
  const [account, key] = [await newAccount(drafts), randomUUID()];
  const first = send(steady, account, key, 2_000);
  await expect.poll(() => stateOf(account)).toBe('dispatched');
  clock.set(offset);
  const second = await send(stepped, account, key, 2_000);
  clock.set('+0');
  const { status, id } = await first;
  // Without drafts, the process that was taken for dead may not know that its email was sent.
  expect(drafts ? [201] : [201, 409, 503, 504]).toContain(status);
  expect([201, 409, 503, 504]).toContain(second.status);
  await expect.poll(() => receivedBy(account)).toBe(1);
  for (const process of [steady, stepped]) {
    const again = await send(process, account, key, 2_000);
    if (drafts) expect(again).toEqual({ status: 201, id });
  }
  expect(await receivedBy(account)).toBe(1);
});

test('a key is refused while it has expired for the process, and works again', async () => {
  const status = async () => (await clientOf(stepped.url, hourKey)('GET', '/v2/accounts')).status;
  expect(await status()).toBe(200);
  clock.set('+2h');
  await expect.poll(status).toBe(401);
  clock.set('+0');
  await expect.poll(status).toBe(200);
});

test('a process that was taken for dead for hours shows its signs of life again', async () => {
  const pids = async () => (await world.db.selectFrom('instances').select('pid').execute()).map(({ pid }) => pid);
  clock.set('+2h');
  await expect.poll(pids, { interval: 20 }).not.toContain(steady.child.pid);
  clock.set('+0');
  await expect.poll(pids).toContain(steady.child.pid);
});
