import { expect, test } from 'vitest';
import { ProviderError } from '../../src/providers/provider.ts';
import { clientOf } from '../support/client.ts';
import { mailClient } from '../support/mail-client.ts';
import { startService } from '../support/service.ts';

const MINUTE_MS = 60_000;
/** Each look at the clock takes a millisecond, so that events have an order. */
let now = Date.now();
const service = await startService({}, { clock: () => ++now });
const { rooms, db } = service;
const application = await service.application();
const call = clientOf(service.url, application.token);

const REFUSED = 'error.401.invalid_credentials';
const REFUSED_IMAP = 'error.401.invalid_credentials_but_valid_account_imap';
const DISCONNECTED = 'error.401.disconnected_account';
const NETWORK = 'error.503.network_down';
const AWAY = 'error.503.service_unavailable';
const WELL = 'ann';

/** An account, and what its mock does. */
async function newAccount({ drafts = true } = {}) {
  const client = await mailClient(service, application, { drafts });
  const id = client.accountId;
  return {
    id,
    send: async (name: string): Promise<number> =>
      (await client.json({ to: [{ identifier: `${name}@mock.test` }] })).status,
    shown: async () => {
      const { status, status_reason } = (await call('GET', `/v2/accounts/${id}`)).body;
      return [status, status_reason];
    },
    events: async () => {
      const rows = await db
        .selectFrom('events')
        .select(['type', 'data'])
        .where('account_id', '=', id)
        .where('type', 'like', 'account.%')
        .orderBy('id')
        .execute();
      return rows.map(({ type, data }) => [type, ...('reason' in data ? [data.reason] : [])]);
    },
    reconnect: async () => {
      const account = await rooms.accounts.find(application.id, id);
      if (account === undefined) throw new Error('The account is gone.');
      await rooms.accounts.reconnect(application.id, id, {
        name: account.name,
        secret: rooms.accounts.secretOf(account),
      });
    },
  };
}

const CONNECTED = [['account.connected'], ['account.sync.completed']];

test('a withdrawn permission disconnects an account at once, until its user reconnects it', async () => {
  const { id, send, shown, events, reconnect } = await newAccount();
  expect(await send(DISCONNECTED)).toBe(401);
  expect(await shown()).toEqual(['disconnected', 'errors/disconnected_account']);
  // The provider is not asked any more.
  expect(await send(WELL)).toBe(401);
  expect((await call('GET', '/v2/accounts?status=disconnected&limit=100')).text).toContain(id);
  await reconnect();
  expect(await shown()).toEqual(['running', null]);
  expect(await send(WELL)).toBe(201);
  expect(await events()).toEqual([
    ...CONNECTED,
    ['account.disconnected', 'errors/disconnected_account'],
    ['account.reconnected'],
    ['account.sync.completed'],
  ]);
});

test.each([[REFUSED], [REFUSED_IMAP]])('%s disconnects an account the second time within a minute', async (refused) => {
  const { send, shown, events } = await newAccount({ drafts: false });
  await send(refused);
  expect(await shown()).toEqual(['running', null]);
  now += MINUTE_MS;
  await send(refused);
  expect(await shown()).toEqual(['running', null]);
  // The provider has accepted the credentials in between, so the next refusal is a first one again.
  await send(WELL);
  await send(refused);
  expect(await shown()).toEqual(['running', null]);
  now += MINUTE_MS / 2;
  await send(refused);
  expect((await shown())[0]).toBe('disconnected');
  expect(await events()).toEqual([
    ...CONNECTED,
    ['account.disconnected', expect.stringContaining('invalid_credentials')],
  ]);
});

test.each([[NETWORK], [AWAY]])('%s is shown as an error, until the provider answers again', async (away) => {
  const { send, shown, events } = await newAccount();
  const reason = `errors/${away.split('.')[2]}`;
  for (let i = 0; i < 2; i++) {
    expect(await send(away)).toBe(503);
    expect(await shown()).toEqual(['error', reason]);
  }
  expect(await send(WELL)).toBe(201);
  expect(await shown()).toEqual(['running', null]);
  expect(await events()).toEqual([...CONNECTED, ['account.errored', reason], ['account.recovered']]);
});

test('other errors of a provider, and timeouts, say nothing about the account', async () => {
  const { send, shown, events } = await newAccount();
  for (const name of [
    'error.422.recipient_rejected',
    'error.403.account_restricted',
    'limit',
    'error.500.provider_error',
  ])
    await send(name);
  expect(await shown()).toEqual(['running', null]);
  expect(await events()).toEqual(CONNECTED);
});

test('a paused account keeps the status of its provider behind its pause', async () => {
  const { id, send, shown, events } = await newAccount();
  await send(NETWORK);
  await call('PATCH', `/v2/accounts/${id}`, { paused: true });
  await call('PATCH', `/v2/accounts/${id}`, { paused: true });
  expect(await shown()).toEqual(['paused', 'errors/network_down']);
  await call('PATCH', `/v2/accounts/${id}`, { paused: false });
  expect(await events()).toEqual([
    ...CONNECTED,
    ['account.errored', 'errors/network_down'],
    ['account.paused'],
    ['account.resumed'],
  ]);
});

test('a call that began before a reconnection says nothing about the new credentials', async () => {
  const { id, shown, events, reconnect } = await newAccount();
  const before = await rooms.accounts.find(application.id, id);
  if (before === undefined) throw new Error('The account is gone.');
  const away = new ProviderError('no', 401, 'errors/disconnected_account', 'The permission was withdrawn.');
  const mock = rooms.providers.find('mock');
  if (mock?.mail === undefined) throw new Error('The mock sends emails.');
  const mail = { ...mock.mail, find: () => Promise.reject(away) };
  const watched = rooms.mailAccounts.mailOf(before, { ...mock, mail });
  now += 1;
  await reconnect();
  const call = watched?.find(
    { messageId: '<a@mock.test>', draft: null },
    rooms.mailAccounts.of(before),
    AbortSignal.abort(),
  );
  await expect(call).rejects.toBe(away);
  expect(await shown()).toEqual(['running', null]);
  expect((await events()).at(-2)).toEqual(['account.reconnected']);
});

test('many failures at the same time write one event', async () => {
  const { send, events } = await newAccount();
  await Promise.all(Array.from({ length: 5 }, () => send(NETWORK)));
  expect(await events()).toEqual([...CONNECTED, ['account.errored', 'errors/network_down']]);
});
