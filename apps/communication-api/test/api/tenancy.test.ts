import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf, inDays } from '../support/client.ts';
import { startService } from '../support/service.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const RUNS = NIGHTLY ? 40 : 8;
const { url, application, rooms, db } = await startService();
const receiver = await startReceiver();

type Application = Awaited<ReturnType<typeof makeApplication>>;

const emailOf = (account: string | undefined, mark: string, reply_to?: string) => ({
  account_id: account,
  to: [{ identifier: 'ann@example.com' }],
  subject: mark,
  body: mark,
  ...(reply_to === undefined ? {} : { reply_to }),
});

/** Both applications use the same idempotency keys. */
const keyOf = (index: number) => ({ 'idempotency-key': `key-${index}` });

/** An application with scopes, accounts, emails and keys. Every name in it contains its mark, which no other one has. */
async function makeApplication(mark: string) {
  const { id, token, key } = await application();
  const service = clientOf(url, token);
  const scopes: string[] = [];
  for (const letter of ['a', 'b'])
    scopes.push((await service('POST', '/v2/scopes', { name: `${mark} ${letter}`, reference: mark })).body.id);
  const accounts: string[] = [];
  for (const scopeId of [null, null, ...scopes, ...scopes])
    accounts.push((await linkAccount(rooms, id, { name: `${mark}-${accounts.length}@mock.test`, scopeId })).id);
  const emails: string[] = [];
  for (const account of accounts)
    emails.push(
      (await service('POST', '/api/v1/emails', emailOf(account, mark), keyOf(emails.length))).body.tracking_id,
    );
  const endpoint = { url: receiver.url, trigger_events: ['account.removed'], description: mark };
  const endpoints: string[] = [(await service('POST', '/v2/webhooks/endpoints', endpoint)).body.id];
  const events = await db.selectFrom('events').select('id').where('application_id', '=', id).execute();
  const [a = '', b = ''] = scopes;
  const tokens = [
    { token, scope: undefined },
    { token: await key('account'), scope: undefined },
    { token: await key('scoped', a), scope: a },
    { token: await key('scoped', b), scope: b },
  ];
  const host = `${mark}.example`;
  const domain = (await service('POST', '/v2/domains', { host, purpose: 'auth' })).body.id as string;
  const { body } = await service('GET', '/v2/api-keys');
  return {
    id,
    mark,
    scopes,
    accounts,
    emails,
    endpoints,
    events: events.map((event) => event.id),
    domain,
    tokens,
    keys: body.data.map((each: { id: string }) => each.id) as string[],
  };
}

/** Which application a request is made for, with which of its keys, and whose ids it names. */
const request = fc.record({
  caller: fc.nat({ max: 1 }),
  key: fc.nat({ max: 3 }),
  owner: fc.nat({ max: 1 }),
  pick: fc.nat({ max: 5 }),
  operation: fc.nat({ max: 999 }),
});

type Call = readonly [method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>];

/** Every operation of this API that names something, with ids of `owner`. */
function callOf(owner: Application, pick: number, operation: number, mark: string): Call {
  const account = owner.accounts[pick % owner.accounts.length];
  const scope = owner.scopes[pick % owner.scopes.length];
  const key = owner.keys[pick % owner.keys.length];
  const email = owner.emails[pick % owner.emails.length];
  const endpoint = owner.endpoints[pick % owner.endpoints.length];
  const event = owner.events[pick % owner.events.length];
  const hook = { url: receiver.url, trigger_events: ['account.removed'], account_ids: [account], description: mark };
  const expires_at = inDays(1);
  const calls: readonly Call[] = [
    ['GET', `/v2/accounts/${account}`],
    ['GET', `/v2/accounts/${account}/mock-emails`],
    ['GET', `/v2/accounts/${account}/mock-emails/mock-${1 + (operation % 30)}`],
    ['GET', '/v2/accounts?limit=100'],
    ['GET', `/v2/accounts?scope_id=${scope}`],
    ['GET', `/v2/accounts?search=${owner.mark}`],
    ['GET', `/v2/accounts?limit=2&cursor=${Buffer.from(account ?? '').toString('base64url')}`],
    ['GET', '/v2/accounts?provider=mock&offset=1'],
    ['PATCH', `/v2/accounts/${account}`, { metadata: { note: mark } }],
    ['PATCH', `/v2/accounts/${account}`, { paused: pick % 2 === 0 }],
    ['PATCH', `/v2/accounts/${account}`, { scope_id: scope }],
    ['DELETE', `/v2/accounts/${account}`],
    ['POST', '/v2/api-keys', { name: mark, expires_at, access: { type: 'global' } }],
    ['POST', '/v2/api-keys', { name: mark, expires_at, access: { type: 'scope', scope_id: scope } }],
    ['GET', '/v2/api-keys?limit=100'],
    ['GET', `/v2/api-keys?account_scope_id=${scope}`],
    ['DELETE', `/v2/api-keys/${key}`],
    ['POST', '/v2/scopes', { name: mark }],
    ['GET', '/v2/scopes?limit=100'],
    ['GET', `/v2/scopes/${scope}`],
    ['PATCH', `/v2/scopes/${scope}`, { reference: mark }],
    ['POST', `/v2/scopes/${scope}/${pick === 0 ? 'disable' : 'enable'}`],
    ['DELETE', `/v2/scopes/${scope}`],
    ['GET', `/v2/limits?account_id=${account}`],
    ['GET', '/v2/limits?provider=mock'],
    ['PUT', '/v2/limits', { account_id: account, windows: [`${pick}/1m`] }],
    ['DELETE', `/v2/limits?account_id=${account}`],
    ['POST', '/v2/limits/counters/reset', { account_id: account }],
    ['POST', '/api/v1/emails', emailOf(account, mark), keyOf(pick)],
    ['POST', '/api/v1/emails', emailOf(account, mark)],
    ['POST', '/api/v1/emails', emailOf(account, mark, email)],
    ['GET', `/v2/emails/${email}`],
    ['GET', `/v2/emails?idempotency_key=key-${pick}`],
    ['GET', '/v2/emails?limit=100'],
    ['GET', `/v2/emails?account_id=${account}&status=sent`],
    ['GET', `/v2/emails?limit=2&cursor=${Buffer.from(email ?? '').toString('base64url')}`],
    ['POST', '/v2/webhooks/endpoints', hook],
    ['GET', '/v2/webhooks/endpoints?limit=100'],
    ['GET', `/v2/webhooks/endpoints/${endpoint}`],
    ['PATCH', `/v2/webhooks/endpoints/${endpoint}`, { account_ids: [account], description: mark }],
    ['DELETE', `/v2/webhooks/endpoints/${endpoint}`],
    ['POST', `/v2/webhooks/endpoints/${endpoint}/secret`],
    ['GET', `/v2/webhooks/conversations?endpoint_id=${endpoint}`],
    ['GET', `/v2/webhooks/conversations?event_id=${event}`],
    ['POST', `/v2/webhooks/events/${event}/redeliver`],
    ['POST', `/v2/webhooks/events/${event}/redeliver?endpoint_id=${endpoint}`],
    ['POST', '/v2/auth/link', { account_id: account, expires_on: expires_at, redirect_uri: 'https://app.example/' }],
    ['POST', '/v2/domains', { host: `n${pick}.${mark}.example`, purpose: 'auth' }],
    ['GET', '/v2/domains?limit=100'],
    ['GET', `/v2/domains/${owner.domain}`],
    ['POST', `/v2/domains/${owner.domain}/verify`],
    ['DELETE', `/v2/domains/${owner.domain}`],
  ];
  const call = calls[operation % calls.length];
  if (call === undefined) throw new Error('The operation does not exist.');
  return call;
}

const NAMING = ['scopes', 'accounts', 'api_keys', 'sends', 'auth_links', 'webhook_endpoints', 'events', 'domains'];

/** Everything that names an application or something in it. One statement, since it is read after every request. */
async function namesOf({ id, mark }: Application): Promise<readonly string[]> {
  const tables = NAMING.map((table) => sql`select id from ${sql.table(table)} where application_id = ${id}`);
  const { rows } = await sql<{ id: string }>`${sql.join(tables, sql` union all `)}`.execute(db);
  return [id, mark, ...rows.map((row) => row.id)];
}

/** What belongs to an application, but for the time at which keys were used. One statement, as above. */
async function contentOf({ id }: Application): Promise<unknown> {
  const rowsOf = (table: string, columns = '*', order = 'id') => sql`(
    select json_agg(r) from (
      select ${sql.raw(columns)} from ${sql.table(table)} where application_id = ${id} order by ${sql.ref(order)}
    ) r
  )`;
  const { rows } = await sql`select json_build_array(${sql.join([
    rowsOf('scopes'),
    rowsOf('accounts'),
    rowsOf('api_keys', 'id, revoked_at'),
    rowsOf('sends'),
    rowsOf('auth_links'),
    rowsOf('webhook_endpoints'),
    rowsOf('domains'),
    sql`(
      select json_agg(a.adjustment order by a.adjustment) from headgate.adjustments a
      where strpos(a.adjustment, ${id} || '/') > 0 or exists (
        select from accounts where application_id = ${id} and strpos(a.adjustment, accounts.id) > 0
      )
    )`,
  ])}) as content`.execute(db);
  return rows;
}

let marks = 0;
const statuses = new Map<number, number>();

test('an application never sees or changes anything of another one, and a scoped key no account outside its scope', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 10, maxLength: 60 }), async (requests) => {
      const pair = [await makeApplication(`mark${marks++}x`), await makeApplication(`mark${marks++}x`)] as const;
      for (const { caller, key, owner, pick, operation } of requests) {
        const [own, other] = caller === 0 ? pair : [pair[1], pair[0]];
        const before = await contentOf(other);
        const used = own.tokens[key];
        const call = callOf(pair[owner === 0 ? 0 : 1], pick, operation, own.mark);
        const { status, text } = await clientOf(url, used?.token)(...call);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        const place = `${call[0]} ${call[1]}: ${text}`;
        expect(status, place).toBeLessThan(500);
        for (const name of await namesOf(other)) expect(text.includes(name), `${name} in ${place}`).toBe(false);
        expect(await contentOf(other), place).toEqual(before);
        if (used?.scope === undefined) continue;
        // The answers name accounts and emails only by their ids.
        for (const [id] of text.matchAll(/acc_[0-9a-z]{26}/g)) {
          const { scope_id } = await db
            .selectFrom('accounts')
            .select('scope_id')
            .where('id', '=', id)
            .executeTakeFirstOrThrow();
          expect(scope_id, place).toBe(used.scope);
        }
      }
    }),
    { numRuns: RUNS },
  );
  // Otherwise the property would hold because nothing was allowed, or because nothing was refused.
  for (const status of [200, 403, 404]) expect(statuses.get(status) ?? 0).toBeGreaterThan(10);
});

test('scopes of one application use the same idempotency key, and no answer says that another one used it', async () => {
  const own = await makeApplication(`mark${marks++}x`);
  const key = `order-${own.mark}`;
  const scoped = own.tokens.filter(({ scope }) => scope !== undefined);
  expect(scoped.length).toBe(2);
  const sends = [];
  for (const { token, scope } of [...scoped, own.tokens[0] as (typeof scoped)[0]]) {
    const account = await db
      .selectFrom('accounts')
      .select('id')
      .where('application_id', '=', own.id)
      .where('scope_id', 'is not distinct from', scope ?? own.scopes[0] ?? null)
      .executeTakeFirstOrThrow();
    const body = { account_id: account.id, to: [{ identifier: 'ann@example.com' }], body: `for ${scope ?? 'all'}` };
    const send = () => clientOf(url, token)('POST', '/api/v1/emails', body, { 'idempotency-key': key });
    const [first, again] = [await send(), await send()];
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true']);
    expect(again.text).toBe(first.text);
    const found = await clientOf(url, token)('GET', `/v2/emails?idempotency_key=${key}`);
    expect([found.status, found.body.id ?? found.body.tracking_id]).toEqual([200, first.body.tracking_id]);
    sends.push(first.body.tracking_id);
  }
  expect(new Set(sends).size).toBe(3);
});
