import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Provider } from '../../src/providers/provider.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { mailClient } from '../support/mail-client.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const DAY_MS = 86_400_000;
/** Each look at the clock takes a millisecond, so that events have an order. */
let now = Date.now();

/** What the provider `google` was told, and how it answers. */
const revoked: unknown[] = [];
let answer: (signal: AbortSignal) => Promise<void> = async () => undefined;
const revoking: Provider = {
  name: 'google',
  title: 'Revoking',
  supports: new Set(['emails']),
  revoke: async ({ id, credentials }, signal) => {
    revoked.push({ id, credentials });
    await answer(signal);
  },
};

const service = await startService({}, { clock: () => ++now, providers: [revoking] });
const { rooms, db } = service;
const application = await service.application();
const call = clientOf(service.url, application.token);

/** The events of an account from the first one on, without the two of its connection. */
async function eventsOf(accountId: string) {
  const rows = await db.selectFrom('events').selectAll().where('account_id', '=', accountId).orderBy('id').execute();
  expect(rows.slice(0, 2).map(({ type }) => type)).toEqual(['account.connected', 'account.sync.completed']);
  expect(new Set(rows.map(({ application_id }) => application_id))).toEqual(new Set([application.id]));
  return rows.slice(2).map(({ type, data }) => ({ type, ...data }));
}

test('the events of an email name it, its label and the provider’s id, and no address or subject', async () => {
  const { accountId, json } = await mailClient(service, application);
  const { json: sent } = await json({
    subject: 'A secret subject',
    to: [{ identifier: 'bob.secret@mock.test' }, { identifier: 'partial@mock.test' }],
    tracking_options: { label: 'welcome' },
  });
  const of = { tracking_id: sent.tracking_id, provider_id: sent.provider_id, label: 'welcome' };
  expect(await eventsOf(accountId)).toEqual([
    { type: 'email.sent', ...of },
    { type: 'email.recipient_rejected', ...of, recipients: 1 },
  ]);
  const rows = await db.selectFrom('events').selectAll().where('account_id', '=', accountId).execute();
  expect(JSON.stringify(rows)).not.toMatch(/secret|@/);
});

test('a verdict of the provider is an event without the provider’s text; an error that may be cured is none', async () => {
  const { accountId, json } = await mailClient(service, application);
  await json({ to: [{ identifier: 'error.503.network_down@mock.test' }] }, 'cured');
  await json({ to: [{ identifier: 'error.422.recipient_rejected@mock.test' }] }, 'verdict');
  const events = (await eventsOf(accountId)).filter(({ type }) => type.startsWith('email.'));
  expect(events).toEqual([
    {
      type: 'email.failed',
      tracking_id: expect.stringMatching(/^eml_/),
      provider_id: null,
      label: null,
      error: { status: 422, type: 'errors/recipient_rejected' },
    },
  ]);
});

test('an outcome that becomes unknown, and is known later, is told each time, once', async () => {
  const { accountId, json } = await mailClient(service, application, { drafts: false });
  const key = randomUUID();
  expect((await json({ to: [{ identifier: 'drop@mock.test' }] }, key)).status).toBe(504);
  const row = await db.selectFrom('sends').selectAll().where('idempotency_key', '=', key).executeTakeFirstOrThrow();
  const { id } = row;
  for (const isNews of [true, false]) expect(await rooms.sends.unknown(row)).toBe(isNews);
  // The retry finds the email.
  for (let i = 0; i < 2; i++) expect((await json({ to: [{ identifier: 'drop@mock.test' }] }, key)).status).toBe(201);
  const of = { tracking_id: id, label: null };
  expect(await eventsOf(accountId)).toEqual([
    { type: 'email.outcome_unknown', ...of, provider_id: null },
    { type: 'email.sent', ...of, provider_id: expect.stringMatching(/^mock-/) },
    { type: 'email.outcome_resolved', ...of, provider_id: expect.stringMatching(/^mock-/), state: 'sent' },
  ]);
});

test('an event is written in the transaction of its change: if it cannot be, nothing has changed', async () => {
  const { id } = await linkAccount(rooms, application.id);
  const { add } = rooms.events;
  rooms.events.add = async () => {
    throw new Error('the disk is full');
  };
  try {
    await expect(rooms.accounts.remove(application.id, id)).rejects.toThrow('the disk is full');
  } finally {
    rooms.events.add = add;
  }
  expect((await call('GET', `/v2/accounts/${id}`)).status).toBe(200);
  expect(await eventsOf(id)).toEqual([]);
});

test('a sync that takes time is told at its start and, once, at its end', async () => {
  const account = await rooms.accounts.insert(application.id, {
    ...{ provider: 'mock', providerUserId: 'sync', name: 'sync', scopeId: null, secret: { credentials: {} } },
    initialSyncMs: DAY_MS,
  });
  const types = async () =>
    (
      await db
        .selectFrom('events')
        .select('type')
        .where('account_id', '=', account?.id ?? '')
        .orderBy('id')
        .execute()
    ).map(({ type }) => type);
  now += DAY_MS / 2;
  await rooms.accounts.completeSyncs(100);
  expect(await types()).toEqual(['account.connected', 'account.sync.started']);
  now += DAY_MS / 2;
  await Promise.all([1, 2, 3].map(() => rooms.accounts.completeSyncs(100)));
  expect(await types()).toEqual(['account.connected', 'account.sync.started', 'account.sync.completed']);
  expect((await call('GET', `/v2/accounts/${account?.id}`)).body.initial_sync).toMatchObject({ status: 'completed' });
});

test('what a person opens is an event; what a program opens is none', async () => {
  const { accountId, json, newest } = await mailClient(service, application);
  const { json: sent } = await json({
    body: '<p><a href="https://example.com/a">a</a></p>',
    tracking_options: { opens: true, links: true, label: 'news' },
  });
  const { html } = (await newest()).mail;
  const [pixel, link] = [/src="([^"]*\/o\/[^"]+)"/, /href="([^"]*\/l\/[^"]+)"/].map(
    (pattern) => service.url + new URL(pattern.exec(String(html))?.[1] ?? '').pathname,
  );
  const person = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0' };
  const open = (url = '', headers: Record<string, string> = person) => fetch(url, { headers, redirect: 'manual' });
  await open(pixel, { 'user-agent': 'curl/8' });
  await open(pixel);
  await open(link);
  await rooms.tracking.close();
  const of = { tracking_id: sent.tracking_id, label: 'news' };
  const events = await eventsOf(accountId);
  expect(events.filter(({ type }) => type.startsWith('tracking.'))).toEqual(
    expect.arrayContaining([
      { type: 'tracking.open', ...of },
      { type: 'tracking.link', ...of, link_no: 1 },
    ]),
  );
  expect(events.filter(({ type }) => type.startsWith('tracking.'))).toHaveLength(2);
});

test('events are deleted after 30 days', async () => {
  const { id } = await linkAccount(rooms, application.id);
  const count = async () => (await eventsOf(id).catch(() => [])).length;
  await call('PATCH', `/v2/accounts/${id}`, { paused: true });
  now += 29 * DAY_MS;
  while ((await rooms.events.deleteOld(2, db)) === 2);
  expect(await count()).toBe(1);
  await call('PATCH', `/v2/accounts/${id}`, { paused: false });
  now += DAY_MS;
  while ((await rooms.events.deleteOld(2, db)) === 2);
  const left = await db.selectFrom('events').select('type').where('account_id', '=', id).execute();
  expect(left).toEqual([{ type: 'account.resumed' }]);
});

test.each([
  ['is told', async () => undefined, 'nothing'],
  ['refuses', () => Promise.reject(new Error('the token is in this text')), 'a warning'],
])('a provider that %s: the account is removed, and %s is logged', async (_, answers, logged) => {
  answer = answers as typeof answer;
  const token = secret();
  const { id } = await linkAccount(rooms, application.id, {
    provider: 'google',
    secret: { credentials: { refreshToken: token } },
  });
  const before = service.logged().length;
  expect((await call('DELETE', `/v2/accounts/${id}`)).status).toBe(200);
  expect(revoked.at(-1)).toEqual({ id, credentials: { refreshToken: token } });
  expect(await eventsOf(id)).toEqual([{ type: 'account.removed', provider: 'google', scope_id: null }]);
  const log = service.logged().slice(before);
  expect(log.includes('were not withdrawn at its provider')).toBe(logged === 'a warning');
  expect(log).not.toContain('the token is in this text');
});

test('a provider that does not answer keeps the client waiting for some seconds at most', async () => {
  answer = () => new Promise(() => undefined);
  const { id } = await linkAccount(rooms, application.id, { provider: 'google' });
  const startedAt = performance.now();
  expect((await call('DELETE', `/v2/accounts/${id}`)).status).toBe(200);
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
