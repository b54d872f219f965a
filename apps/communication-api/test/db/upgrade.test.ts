/**
 * A database of an older version of the service, with a row in every table, is migrated to the newest schema. Then the
 * service uses every row.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { waitFor } from 'headgate-testbed/patience';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openServer } from '../../src/db/database.ts';
import { MIGRATION_NAMES, migrate } from '../../src/db/migrate.ts';
import { SEALED_COLUMNS } from '../../src/db/sealed-values.ts';
import { newId } from '../../src/domain/ids.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { TrackingTokens } from '../../src/tracking/tracking-tokens.ts';
import { linkAccount } from '../support/accounts.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf, inDays } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { columnsOf, migrateTo, type Rows, readRows, writeRows } from '../support/old-schema.ts';
import { startService } from '../support/service.ts';
import { createTestDatabase } from '../support/test-database.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const KEY = randomBytes(32);
const SECRET_KEYS = `k1:${KEY.toString('base64')}`;
const TARGET = 'https://shop.example/';
const ADJUSTED_AT = '2026-01-02T03:04:05.000Z';
/** Their rows became shared limits of headgate. */
const GONE = ['limit_overrides', 'limits_version'];
const BROWSER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' };
const ORPHAN = newId('eml', Date.now());
/** From this version on, keys for other purposes come from a secret of the database, not from the master key. */
const WITH_ROOT = '0005-accounts';
/** From this version on, keys are in tables of headgate, whose rows are not copied here. */
const WITH_CLAIMS = '0013-claims';
/** From this version on, so are adjusted limits. */
const WITH_SHARED_LIMITS = '0014-shared-limits';

const database = await createTestDatabase();
afterAll(() => database.drop());
const source = await startService({ DATABASE_URL: database.url, SECRET_KEYS });
const { id: applicationId, token, key } = await source.application();
const call = clientOf(source.url, token);

/** What the rows are about. */
interface Made {
  readonly account: string;
  readonly scope: string;
  readonly scopedToken: string;
  readonly revokedToken: string;
  readonly email: Readonly<Record<string, unknown>>;
  readonly idempotencyKey: string;
  readonly sent: string;
  readonly linkPath: string;
  readonly cookies: ReadonlyMap<string, string>;
  readonly event: string;
  /** Of an Owner's session in the dashboard. */
  readonly ownerCookie: string;
}
let made: Made;
let rows: Rows;

const ok = async (...args: Parameters<typeof call>) => {
  const answer = await call(...args);
  expect([200, 201], `${args[0]} ${args[1]}: ${answer.text}`).toContain(answer.status);
  return answer.body;
};

beforeAll(async () => {
  made = await makeRows();
  const changed = { application_id: applicationId, changed_by: 'key_of_before', changed_at: ADJUSTED_AT };
  rows = {
    ...(await readRows(source.db, await columnsOf(source.db))),
    // Tables of older versions, with the limits of `makeRows`.
    limits_version: [{ application_id: applicationId, version: 2, changed_at: ADJUSTED_AT }],
    limit_overrides: [
      { ...changed, account_id: made.account, windows: ['50/1m'] },
      { ...changed, provider: 'mock', route: 'POST /api/v1/emails', windows: ['40/1m', '400/1d'] },
    ].map((row) => ({ provider: null, account_id: null, route: null, ...row })),
  };
});

/** Uses the service until each of its tables has a row. */
async function makeRows(): Promise<Made> {
  const { rooms, db } = source;
  const { id: account } = await linkAccount(rooms, applicationId);
  const { id: scope } = await ok('POST', '/v2/scopes', { name: 'Berlin', reference: 'b' });
  const scopedToken = await key('scoped', scope);
  const access = { type: 'global' };
  const revoked = await ok('POST', '/v2/api-keys', { name: 'old', expires_at: inDays(9), access });
  await ok('DELETE', `/v2/api-keys/${revoked.id}`);
  await ok('PUT', '/v2/limits', { account_id: account, windows: ['50/1m'] });
  await ok('PUT', '/v2/limits', { provider: 'mock', route: 'POST /api/v1/emails', windows: ['40/1m', '400/1d'] });
  await ok('POST', '/v2/domains', { host: 'connect.app.example', purpose: 'auth' });
  await ok('POST', '/v2/webhooks/endpoints', { url: 'http://127.0.0.1:1/hook', trigger_events: ['*'] });
  const idempotencyKey = randomUUID();
  const email = {
    ...{ account_id: account, to: [{ identifier: 'ann@example.com' }], subject: 'Hi' },
    ...{ body: `<a href="${TARGET}">shop</a>`, tracking_options: { opens: true, links: true } },
  };
  const { tracking_id: sent } = await ok('POST', '/api/v1/emails', email, { 'idempotency-key': idempotencyKey });
  await fetch(`${source.url}/t/l/${tokenOfLink(rooms.envelope, sent)}`, { redirect: 'manual', headers: BROWSER });
  const link = await ok('POST', '/v2/auth/link', {
    ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', expires_on: inDays(1) },
  });
  const linkPath = new URL(link.link).pathname;
  const browser = new PlainBrowser(source.url);
  await browser.open(linkPath);

  const { cookie: ownerCookie, member, sessionId } = await peopleOf(source).signedIn('owner');
  const { secondFactors } = rooms.people;
  await secondFactors.setUp(member, secondFactors.offer(member.id), { step: 1, replaces: undefined, sessionId });
  await rooms.people.invitations.createOwnerLink();

  const at = new Date();
  const message = { account_id: account, message_id: '<a@example.com>', thread: 't', recipients: [], at };
  await db
    .insertInto('mock_drafts')
    .values({ ...message, id: randomUUID(), raw: Buffer.from('x'), size: 1 })
    .execute();
  await db
    .insertInto('sent_copies')
    .values({
      ...{ send_id: sent, application_id: applicationId, account_id: account, created_at: at },
      message: rooms.envelope.seal(`sent_copies/${sent}/message`, Buffer.from('x')),
    })
    .execute();
  // Both are written after the answer.
  const event = await waitFor(async () => {
    await db.selectFrom('tracking_hits').select('id').executeTakeFirstOrThrow();
    const conversation = db.selectFrom('webhook_conversations').select('event_id');
    return (await conversation.executeTakeFirstOrThrow()).event_id;
  });
  return {
    ...{ account, scope, scopedToken, revokedToken: revoked.api_key, email, idempotencyKey, sent, event },
    ...{ linkPath, cookies: new Map(browser.cookies), ownerCookie },
  };
}

const tokenOfLink = (envelope: Pick<Envelope, 'derive'>, sendId: string): string =>
  new TrackingTokens([envelope.derive('tracking')]).sealLink({ sendId, no: 1, target: TARGET });

test('there is a row in every table, so that no table is left out below', () => {
  const empty = Object.entries(rows).filter(([, all]) => all.length === 0);
  // A new table needs a row in `makeRows`, and what must still work with it belongs to the tests below.
  expect(empty.map(([table]) => table)).toEqual([]);
});

/**
 * A change tests the first schema, the last ones, and those before and after a version that other answers are expected of.
 * The others come by on the way from the first one.
 */
const OLD = MIGRATION_NAMES.slice(0, -1).filter((name, index, all) => {
  const follows = (at: string): boolean => name === at || all[index + 1] === at;
  return (
    NIGHTLY || index === 0 || index >= all.length - 2 || [WITH_ROOT, WITH_CLAIMS, WITH_SHARED_LIMITS].some(follows)
  );
});

describe.each(OLD)('a database with the schema of %s', (name) => {
  let opened: Awaited<ReturnType<typeof upgrade>>;
  beforeAll(async () => {
    opened = await upgrade(name);
  });

  test('is migrated, and no row is lost or changed', async () => {
    expect(opened.ran).toEqual(MIGRATION_NAMES.slice(MIGRATION_NAMES.indexOf(name) + 1));
    expect(Object.values(opened.before).flat().length).toBeGreaterThan(10);
    expect(opened.after).toEqual(opened.before);
  });

  test('every sealed value opens', async () => {
    const { rooms, db } = opened.service;
    let count = 0;
    for (const { table, column, id = 'id' } of SEALED_COLUMNS) {
      const { rows: values } = await sql<{ id: string; value: Uint8Array }>`
        select ${sql.ref(id)} as id, ${sql.ref(column)} as value from ${sql.table(table)}
        where length(${sql.ref(column)}) > 0`.execute(db);
      for (const { id: row, value } of values) {
        expect(rooms.envelope.open(`${table}/${row}/${column}`, value).length).toBeGreaterThan(0);
        count++;
      }
    }
    expect(count).toBeGreaterThan(3);
  });

  test('accounts, keys, scopes, limits and domains are answered as before', async () => {
    const limits = [`/v2/limits?account_id=${made.account}`, '/v2/limits?provider=mock'];
    const paths = [
      ...[`/v2/accounts/${made.account}`, '/v2/accounts', '/v2/scopes', `/v2/scopes/${made.scope}`],
      ...(name < WITH_SHARED_LIMITS ? limits : []),
    ];
    for (const path of paths) {
      const now = await opened.call('GET', path);
      expect({ path, status: now.status, body: now.body }).toEqual({
        ...{ path, status: 200 },
        body: (await call('GET', path)).body,
      });
    }
    const author = { by: 'key_of_before', at: Date.parse(ADJUSTED_AT) };
    const authors = name < WITH_SHARED_LIMITS ? [author, author] : [];
    expect(opened.service.rooms.limits.shared.list()).toMatchObject(authors);
    const [domain] = (await opened.call('GET', '/v2/domains')).body.data;
    expect(domain).toMatchObject({ host: 'connect.app.example', purpose: 'auth', status: 'pending' });
    expect((await opened.call('POST', `/v2/domains/${domain.id}/verify`)).status).toBe(200);
    const keys = (await opened.call('GET', '/v2/api-keys')).body.data;
    expect(keys.map(({ name: keyName }: { name: string }) => keyName)).toEqual(['scoped']);
    expect((await clientOf(opened.service.url, made.scopedToken)('GET', '/v2/accounts')).body.data).toEqual([]);
    expect((await clientOf(opened.service.url, made.revokedToken)('GET', '/v2/accounts')).status).toBe(401);
  });

  test('the account sends, and an email of before is not sent again', async () => {
    const { db } = opened.service;
    const received = async () => (await db.selectFrom('mock_messages').select('id').execute()).length;
    expect(await received()).toBe(1);
    const retry = await opened.call('POST', '/api/v1/emails', made.email, { 'idempotency-key': made.idempotencyKey });
    // The fingerprint of an older version was made with another key, so the retry looks like another request.
    // Without its claim, which is in a table of headgate, the row alone prevents a second email.
    if (name >= WITH_CLAIMS) expect(retry.status).toBe(500);
    else if (name >= WITH_ROOT) expect(retry).toMatchObject({ status: 201, body: { tracking_id: made.sent } });
    else expect(retry).toMatchObject({ status: 409, body: { type: 'errors/already_used' } });
    expect(await received()).toBe(1);
    const reply = { ...made.email, reply_to: made.sent };
    expect((await opened.call('POST', '/api/v1/emails', reply)).status).toBe(201);
    expect(await received()).toBe(2);
    expect((await opened.call('GET', `/v2/emails/${made.sent}`)).body).toMatchObject({ tracking: { clicks: 1 } });
  });

  test.runIf(name < WITH_CLAIMS)('an email whose process died is an orphan, and is never sent again', async () => {
    const { idempotency } = opened.service.rooms;
    expect(await idempotency.inspect({ scope: applicationId, key: 'orphan' })).toMatchObject({
      ...{ state: 'in_progress', dispatched: true, leaseMs: 0 },
    });
    expect((await opened.call('GET', '/v2/emails?idempotency_key=orphan')).body).toMatchObject({
      ...{ id: ORPHAN, state: 'sending' },
    });
  });

  test('a tracked link of before leads to its target', async () => {
    const { rooms, url } = opened.service;
    const envelope = name >= WITH_ROOT ? rooms.envelope : new Envelope([{ id: 'k1', key: KEY }]);
    const answer = await fetch(`${url}/t/l/${tokenOfLink(envelope, made.sent)}`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, TARGET]);
  });

  test('a browser in the middle of a link goes on, and its account is linked', async () => {
    const browser = new PlainBrowser(opened.service.url);
    // Their names and their form belong to the session; a version without the root secret had derived another key.
    if (name >= WITH_ROOT) for (const [cookie, value] of made.cookies) browser.cookies.set(cookie, value);
    await browser.open(made.linkPath);
    const address = `${randomUUID()}@mock.test`;
    const callback = await browser.submit('/step/login', { address, password: 'a', drafts: 'on' });
    expect(callback).toMatch(/^https:\/\/app\.example\/cb\?account_id=acc_/);
  });

  test.runIf(name >= '0008-people')('who was signed in to the dashboard still is', async () => {
    const session = await opened.service.rooms.people.sessions.resolve(made.ownerCookie);
    expect(session?.member.role).toBe('owner');
    expect(session?.hasSecondFactor).toBe(name >= '0012-second-factor');
  });

  test.runIf(name >= '0002-events')(
    'webhook endpoints and their events are known, and are delivered again',
    async () => {
      const { body } = await opened.call('GET', '/v2/webhooks/endpoints');
      expect(body.data).toMatchObject([{ url: 'http://127.0.0.1:1/hook', enabled: true }]);
      expect((await opened.call('POST', `/v2/webhooks/events/${made.event}/redeliver`)).status).toBe(200);
      expect((await opened.call('GET', '/v2/webhooks/conversations')).body.data).toContainEqual(
        expect.objectContaining({ event_id: made.event }),
      );
    },
  );
});

/** Makes an older database with the rows, migrates it, and starts the service on it. */
async function upgrade(name: string) {
  const { url, drop } = await createTestDatabase();
  const old = openServer(url, () => undefined);
  await migrateTo(old, name);
  await writeRows(old, rows);
  // An email whose process died.
  const orphan = { id: ORPHAN, idempotency_key: 'orphan', message_id: '<lost@example.com>', state: 'dispatched' };
  const columnsOfOrphan = { ...orphan, envelope: null, provider_id: null, settled_at: null };
  await sql`insert into sends select (jsonb_populate_record(null::sends, to_jsonb(s)
    || ${JSON.stringify(columnsOfOrphan)}::jsonb)).* from sends as s`.execute(old);
  const all = Object.entries(await columnsOf(old));
  const columns = Object.fromEntries(all.filter(([table]) => !GONE.includes(table)));
  const before = await readRows(old, columns);
  const ran = await migrate(old);
  const after = await readRows(old, columns);
  await old.destroy();
  cleanUpLater(drop);
  const service = await startService({ DATABASE_URL: url, SECRET_KEYS });
  return { before, after, ran, service, call: clientOf(service.url, token) };
}
