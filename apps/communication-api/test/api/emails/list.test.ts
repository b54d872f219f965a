import { expect, test } from 'vitest';
import type { Account } from '../../../src/accounts/accounts.ts';
import { newId } from '../../../src/domain/ids.ts';
import { linkAccount } from '../../support/accounts.ts';
import { type Client, clientOf } from '../../support/client.ts';
import { unknownEmail } from '../../support/emails.ts';
import { startService } from '../../support/service.ts';

const service = await startService();

/** An application with two accounts, of which the first one is in a scope, and a client with a service key. */
async function start() {
  const application = await service.application();
  const { id: scope } = await service.rooms.scopes.create(application.id, { name: 'One', reference: null });
  const scoped = await linkAccount(service.rooms, application.id, { scopeId: scope });
  const other = await linkAccount(service.rooms, application.id);
  const ask = clientOf(service.url, application.token);
  const withKey = async (role: 'scoped' | 'account') =>
    clientOf(service.url, await application.key(role, role === 'scoped' ? scope : undefined));
  const send = async ({ id }: Account, to = 'ann@mock.test', fields: object = {}): Promise<string> => {
    const body = { account_id: id, to: [{ identifier: to }], body: '<p>Hello</p>', ...fields };
    return (await ask('POST', '/api/v1/emails', body)).body.tracking_id;
  };
  return { application, scoped, other, ask, withKey, send };
}

const list = async (ask: Client, query = '') => (await ask('GET', `/v2/emails${query}`)).body;
const idsOf = async (ask: Client, query = ''): Promise<readonly string[]> =>
  (await list(ask, query)).data.map(({ id }: { id: string }) => id);

/** Ids of one millisecond have no order in time. */
const newestFirst = (ids: readonly (string | undefined)[]): string[] => ids.map(String).sort().reverse();

test('emails are listed as they are read one by one, the newest first, in pages', async () => {
  const { ask, send, scoped, other } = await start();
  const tracked = await send(scoped, 'ann@mock.test', { tracking_options: { opens: true, links: true, label: 'x' } });
  const ids = newestFirst([tracked, await send(other), await send(scoped), await send(other), await send(scoped)]);
  await service.db
    .insertInto('tracking_hits')
    .values(
      [null, null, 1].map((link_no) => ({
        ...{ application_id: scoped.application_id, send_id: tracked, class: 'person' as const, at: new Date() },
        ...{ kind: link_no === null ? ('open' as const) : ('link' as const), link_no },
      })),
    )
    .execute();
  const all = await list(ask);
  const each = await Promise.all(ids.map(async (id) => (await ask('GET', `/v2/emails/${id}`)).body));
  expect(all).toEqual({ object: 'EmailList', data: each, has_more: false, next_cursor: null });
  expect(each.find(({ id }) => id === tracked).tracking).toEqual({ label: 'x', opens: 2, clicks: 1 });
  expect(await idsOf(ask, '?offset=1&limit=2')).toEqual(ids.slice(1, 3));
  const seen: string[] = [];
  for (let query = '?limit=2', pages = 0; query !== ''; pages++) {
    expect(pages).toBeLessThan(3);
    const page = await list(ask, query);
    seen.push(...page.data.map(({ id }: { id: string }) => id));
    query = page.has_more ? `?limit=2&cursor=${page.next_cursor}` : '';
  }
  expect(seen).toEqual(ids);
});

test('emails are filtered by their state and their account', async () => {
  const { application, ask, send, scoped, other } = await start();
  const sent = await send(scoped);
  await send(other, 'error.422.recipient_rejected@mock.test');
  const unknown = [
    await unknownEmail(service, application.id, scoped.id),
    await unknownEmail(service, application.id, other.id),
  ];
  const sending = await unknownEmail(service, application.id, other.id);
  await service.db.updateTable('sends').set({ state: 'dispatched' }).where('id', '=', sending).execute();
  const statesOf = async (query: string) => (await list(ask, query)).data.map(({ state }: { state: string }) => state);
  expect(await idsOf(ask, '?status=unknown')).toEqual(newestFirst(unknown));
  expect(await statesOf('?status=unknown')).toEqual(['unknown', 'unknown']);
  expect(await idsOf(ask, '?status=sent')).toEqual([sent]);
  expect(await idsOf(ask, '?status=sending')).toEqual([sending]);
  expect(await statesOf('?status=failed')).toEqual(['failed']);
  expect(await idsOf(ask, `?account_id=${scoped.id}`)).toEqual(newestFirst([unknown[0], sent]));
  expect(await idsOf(ask, `?account_id=${other.id}&status=unknown`)).toEqual([unknown[1]]);
  const next = await list(ask, '?status=unknown&limit=1');
  expect(await idsOf(ask, `?status=unknown&limit=1&cursor=${next.next_cursor}`)).toEqual(newestFirst(unknown).slice(1));
});

test('a key lists only the emails of its application, and a scoped key those of its scope', async () => {
  const mine = await start();
  const theirs = await start();
  const own = [await mine.send(mine.scoped), await mine.send(mine.other)];
  const foreign = [await theirs.send(theirs.scoped), await theirs.send(theirs.other)];
  const scopedKey = await mine.withKey('scoped');
  expect(await idsOf(await mine.withKey('account'))).toEqual(newestFirst(own));
  expect(await idsOf(mine.ask)).toEqual(newestFirst(own));
  expect(await idsOf(scopedKey)).toEqual([own[0]]);
  expect(await idsOf(scopedKey, '?status=sent')).toEqual([own[0]]);
  expect(await idsOf(scopedKey, `?account_id=${mine.other.id}`)).toEqual([]);
  expect(await idsOf(theirs.ask)).toEqual(newestFirst(foreign));
  for (const ask of [mine.ask, scopedKey])
    for (const account of [theirs.scoped.id, theirs.other.id, newId('acc', Date.now()), 'x', ''])
      expect(await idsOf(ask, `?account_id=${account}`)).toEqual([]);
  // Another application's id is only a place in the order of ids.
  const cursor = Buffer.from(newestFirst(foreign)[0] ?? '').toString('base64url');
  expect(await idsOf(mine.ask, `?cursor=${cursor}`)).toEqual(newestFirst(own));
});

test('a query that is not understood is a 422', async () => {
  const { ask } = await start();
  for (const query of [
    'status=sended',
    'status=',
    'status=sent&status=failed',
    'state=sent',
    'limit=0',
    'limit=101',
    'offset=1&cursor=x',
    'cursor=x',
    'idempotency_key=a&status=sent',
    'idempotency_key=a&account_id=x',
    'idempotency_key=a&offset=0',
    'idempotency_key=a&cursor=x',
  ])
    expect({ query, ...(await ask('GET', `/v2/emails?${query}`)) }).toMatchObject({
      status: 422,
      body: { type: 'errors/unprocessable_entity' },
    });
  expect((await clientOf(service.url, undefined)('GET', '/v2/emails')).status).toBe(401);
});
