import { NIGHTLY } from 'headgate-testbed/nightly';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { Environment } from '../../src/domain/key-token.ts';
import type { MemberRole } from '../../src/domain/member-roles.ts';
import { actorOf } from '../../src/people/member.ts';
import { providerIdOf } from '../../src/providers/mock/mailbox.ts';
import { secretsVersionOf } from '../../src/webhooks/endpoint-secrets.ts';
import { Csrf } from '../../src/wizard/csrf.ts';
import { linkAccount } from '../support/accounts.ts';
import { peopleOf, type TestMember } from '../support/dashboard.ts';
import { unknownEmail } from '../support/emails.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
// Nothing is delivered in the background, so that the tables change by requests only.
await service.background.close();
const { rooms, db, app, application } = service;
const { newMember, signedIn } = peopleOf(service);
const csrf = new Csrf(rooms.envelope);
const PAGE = { limit: 1, offset: 0, before: undefined };

/** What a request works on: new for each request. */
interface Place {
  readonly application: string;
  readonly member: string;
  readonly owner: string;
  readonly invitation: string;
  readonly ownerInvitation: string;
  readonly serviceKey: string;
  readonly accountKey: string;
  readonly account: string;
  readonly pausedAccount: string;
  readonly mockAccount: string;
  /** In the mailbox of the mock account. */
  readonly message: string;
  /** Its outcome is unknown. */
  readonly email: string;
  readonly endpoint: string;
  readonly secretsVersion: string;
  readonly event: string;
  readonly scope: string;
  readonly domain: string;
}

interface Row {
  readonly what: string;
  /** The route, with its parameters. */
  readonly route: `${'GET' | 'POST'} ${string}`;
  /** What the parameter `id` or `key` of the route is, or `account` if it is not the usual one. */
  readonly subject?: keyof Place;
  readonly fields?: Readonly<Record<string, string>> | ((place: Place) => Readonly<Record<string, string>>);
  /** The prefix of the id of what the form creates. */
  readonly creates?: 'key' | 'inv' | 'lnk' | 'whe';
  /** Default: 200 for a page and for a form that creates something to be shown once, else 303. */
  readonly answers?: 200;
  /** Whether the form changes nothing. */
  readonly isHarmless?: true;
  /**
   * Who may do it: a Member in development, a Member in production, an Admin, an Owner. The environment is the one of the
   * application of the request.
   */
  readonly may: string;
}

const IN_A_MONTH = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
const KEY = { name: 'k', expires_on: IN_A_MONTH, access: 'global' };
const LIMIT = { route: 'all', windows: '9/1m', seen: '0' };
const APPLICATION = '/dashboard/applications/:application';
const ENDPOINT = { url: 'https://app.example/', 'kinds-*': 'on' };

const ROWS: readonly Row[] = [
  { what: 'look at an application', route: `GET ${APPLICATION}`, may: 'yes yes yes yes' },
  {
    what: 'create an account key',
    route: `POST ${APPLICATION}/account-keys`,
    fields: KEY,
    creates: 'key',
    may: 'yes no yes yes',
  },
  {
    what: 'revoke an account key',
    route: `POST ${APPLICATION}/account-keys/:key/revoke`,
    subject: 'accountKey',
    may: 'yes no yes yes',
  },
  {
    what: 'create a service key',
    route: `POST ${APPLICATION}/service-keys`,
    fields: KEY,
    creates: 'key',
    may: 'no no yes yes',
  },
  {
    what: 'revoke a service key',
    route: `POST ${APPLICATION}/service-keys/:key/revoke`,
    subject: 'serviceKey',
    may: 'no no yes yes',
  },
  { what: 'list accounts', route: `GET ${APPLICATION}/accounts`, may: 'yes yes yes yes' },
  { what: 'look at an account', route: `GET ${APPLICATION}/accounts/:account`, may: 'yes yes yes yes' },
  {
    what: 'make a link to reconnect',
    route: `POST ${APPLICATION}/accounts/:account/link`,
    fields: { redirect_uri: 'https://app.example/cb', lifetime: '1' },
    creates: 'lnk',
    may: 'yes no yes yes',
  },
  {
    what: 'look at the mailbox of a mock account',
    route: `GET ${APPLICATION}/accounts/:account/mailbox`,
    subject: 'mockAccount',
    may: 'yes yes yes yes',
  },
  {
    what: 'look at an email in it',
    route: `GET ${APPLICATION}/accounts/:account/mailbox/:message`,
    subject: 'mockAccount',
    may: 'yes yes yes yes',
  },
  {
    what: 'look at the HTML of such an email',
    route: `GET ${APPLICATION}/accounts/:account/mailbox/:message/html`,
    subject: 'mockAccount',
    may: 'yes yes yes yes',
  },
  { what: 'pause an account', route: `POST ${APPLICATION}/accounts/:account/pause`, may: 'yes no yes yes' },
  {
    what: 'resume an account',
    route: `POST ${APPLICATION}/accounts/:account/resume`,
    subject: 'pausedAccount',
    may: 'yes no yes yes',
  },
  { what: 'remove an account', route: `POST ${APPLICATION}/accounts/:account/remove`, may: 'yes no yes yes' },
  { what: 'list emails', route: `GET ${APPLICATION}/emails`, may: 'yes yes yes yes' },
  { what: 'look at an email', route: `GET ${APPLICATION}/emails/:email`, may: 'yes yes yes yes' },
  {
    what: 'resolve an email',
    route: `POST ${APPLICATION}/emails/:email/resolve`,
    fields: { outcome: 'not_sent' },
    may: 'yes no yes yes',
  },
  { what: 'look at the limits of providers', route: `GET ${APPLICATION}/limits`, may: 'yes yes yes yes' },
  { what: 'look at the limits of a provider', route: `GET ${APPLICATION}/limits/:provider`, may: 'yes yes yes yes' },
  {
    what: 'preview a limit of a provider',
    route: `POST ${APPLICATION}/limits/:provider/preview`,
    fields: LIMIT,
    answers: 200,
    isHarmless: true,
    may: 'yes no yes yes',
  },
  {
    what: 'adjust a limit of a provider',
    route: `POST ${APPLICATION}/limits/:provider/limits`,
    fields: LIMIT,
    may: 'yes no yes yes',
  },
  {
    what: 'preview a limit',
    route: `POST ${APPLICATION}/accounts/:account/preview`,
    fields: LIMIT,
    answers: 200,
    isHarmless: true,
    may: 'yes no yes yes',
  },
  {
    what: 'adjust a limit',
    route: `POST ${APPLICATION}/accounts/:account/limits`,
    fields: LIMIT,
    may: 'yes no yes yes',
  },
  { what: 'empty counters', route: `POST ${APPLICATION}/accounts/:account/counters`, may: 'yes no yes yes' },
  { what: 'list endpoints', route: `GET ${APPLICATION}/webhooks`, may: 'yes yes yes yes' },
  {
    what: 'create an endpoint',
    route: `POST ${APPLICATION}/webhooks`,
    fields: ENDPOINT,
    creates: 'whe',
    may: 'yes no yes yes',
  },
  { what: 'look at an endpoint', route: `GET ${APPLICATION}/webhooks/:endpoint`, may: 'yes yes yes yes' },
  {
    what: 'change an endpoint',
    route: `POST ${APPLICATION}/webhooks/:endpoint`,
    fields: ENDPOINT,
    may: 'yes no yes yes',
  },
  { what: 'enable an endpoint', route: `POST ${APPLICATION}/webhooks/:endpoint/enable`, may: 'yes no yes yes' },
  { what: 'disable an endpoint', route: `POST ${APPLICATION}/webhooks/:endpoint/disable`, may: 'yes no yes yes' },
  { what: 'delete an endpoint', route: `POST ${APPLICATION}/webhooks/:endpoint/delete`, may: 'yes no yes yes' },
  {
    what: 'make a new secret',
    route: `POST ${APPLICATION}/webhooks/:endpoint/secret`,
    fields: ({ secretsVersion }) => ({ seen: secretsVersion }),
    answers: 200,
    may: 'yes no yes yes',
  },
  { what: 'send a test event', route: `POST ${APPLICATION}/webhooks/:endpoint/test`, may: 'yes no yes yes' },
  { what: 'look at a delivery', route: `GET ${APPLICATION}/webhooks/:endpoint/events/:event`, may: 'yes yes yes yes' },
  {
    what: 'redeliver an event',
    route: `POST ${APPLICATION}/webhooks/:endpoint/events/:event/redeliver`,
    may: 'yes no yes yes',
  },
  { what: 'list scopes', route: `GET ${APPLICATION}/scopes`, may: 'yes yes yes yes' },
  { what: 'create a scope', route: `POST ${APPLICATION}/scopes`, fields: { name: 's' }, may: 'yes no yes yes' },
  { what: 'look at a scope', route: `GET ${APPLICATION}/scopes/:scope`, may: 'yes yes yes yes' },
  { what: 'change a scope', route: `POST ${APPLICATION}/scopes/:scope`, fields: { name: 's' }, may: 'yes no yes yes' },
  { what: 'enable a scope', route: `POST ${APPLICATION}/scopes/:scope/enable`, may: 'yes no yes yes' },
  { what: 'disable a scope', route: `POST ${APPLICATION}/scopes/:scope/disable`, may: 'yes no yes yes' },
  { what: 'delete a scope', route: `POST ${APPLICATION}/scopes/:scope/delete`, may: 'yes no yes yes' },
  { what: 'look at domains', route: 'GET /dashboard/domains', may: 'no no yes yes' },
  {
    what: 'add a domain',
    route: 'POST /dashboard/domains',
    fields: ({ application: id }) => ({ application: id, host: 'links.app.example', purpose: 'tracking' }),
    may: 'no no yes yes',
  },
  { what: 'check a domain', route: 'POST /dashboard/domains/:id/check', subject: 'domain', may: 'no no yes yes' },
  { what: 'remove a domain', route: 'POST /dashboard/domains/:id/remove', subject: 'domain', may: 'no no yes yes' },
  { what: 'list applications', route: 'GET /dashboard/applications', may: 'yes yes yes yes' },
  {
    what: 'create an application',
    route: 'POST /dashboard/applications',
    fields: { name: 'n', environment: 'development' },
    may: 'no no yes yes',
  },
  { what: 'look at members', route: 'GET /dashboard/members', may: 'no no yes yes' },
  {
    what: 'invite a Member',
    route: 'POST /dashboard/invitations',
    fields: { label: 'l', role: 'member' },
    creates: 'inv',
    may: 'no no yes yes',
  },
  {
    what: 'invite an Admin',
    route: 'POST /dashboard/invitations',
    fields: { label: 'l', role: 'admin' },
    creates: 'inv',
    may: 'no no yes yes',
  },
  {
    what: 'invite an Owner',
    route: 'POST /dashboard/invitations',
    fields: { label: 'l', role: 'owner' },
    creates: 'inv',
    may: 'no no no yes',
  },
  {
    what: 'withdraw an invitation',
    route: 'POST /dashboard/invitations/:id/withdraw',
    subject: 'invitation',
    may: 'no no yes yes',
  },
  {
    what: 'withdraw the invitation of an Owner',
    route: 'POST /dashboard/invitations/:id/withdraw',
    subject: 'ownerInvitation',
    may: 'no no no yes',
  },
  {
    what: 'make a Member an Admin',
    route: 'POST /dashboard/members/:id/role',
    subject: 'member',
    fields: { role: 'admin' },
    may: 'no no yes yes',
  },
  {
    what: 'make a Member an Owner',
    route: 'POST /dashboard/members/:id/role',
    subject: 'member',
    fields: { role: 'owner' },
    may: 'no no no yes',
  },
  {
    what: 'make an Owner a Member',
    route: 'POST /dashboard/members/:id/role',
    subject: 'owner',
    fields: { role: 'member' },
    may: 'no no no yes',
  },
  { what: 'remove a Member', route: 'POST /dashboard/members/:id/remove', subject: 'member', may: 'no no yes yes' },
  { what: 'remove an Owner', route: 'POST /dashboard/members/:id/remove', subject: 'owner', may: 'no no no yes' },
  { what: 'sign a Member out', route: 'POST /dashboard/members/:id/sign-out', subject: 'member', may: 'no no yes yes' },
  { what: 'sign an Owner out', route: 'POST /dashboard/members/:id/sign-out', subject: 'owner', may: 'no no no yes' },
  {
    what: 'reset the second factor of a Member',
    route: 'POST /dashboard/members/:id/reset-second-factor',
    subject: 'member',
    may: 'no no yes yes',
  },
  {
    what: 'reset the second factor of an Owner',
    route: 'POST /dashboard/members/:id/reset-second-factor',
    subject: 'owner',
    may: 'no no no yes',
  },
  {
    what: 'say who needs a second factor',
    route: 'POST /dashboard/organization/second-factor',
    fields: { second_factor_for: 'nobody' },
    may: 'no no yes yes',
  },
  { what: 'look at the audit log', route: 'GET /dashboard/audit', may: 'no no yes yes' },
  {
    what: 'rename the organization',
    route: 'POST /dashboard/organization',
    fields: { organization: 'O' },
    may: 'no no no yes',
  },
  { what: 'look at the own login', route: 'GET /dashboard/login', may: 'yes yes yes yes' },
  { what: 'look at the own second factor', route: 'GET /dashboard/login/second-factor', may: 'yes yes yes yes' },
  { what: 'look at the own sessions', route: 'GET /dashboard/login/sessions', may: 'yes yes yes yes' },
];

/** Everybody may do these, some also without a session. The tests of signing in, second factors and sessions do. */
const OF_EVERYBODY = [
  'GET /dashboard',
  'GET /dashboard/sign-in',
  'POST /dashboard/sign-in',
  'GET /dashboard/sign-in/code',
  'POST /dashboard/sign-in/code',
  'GET /dashboard/join/:token',
  'POST /dashboard/join/:token',
  'POST /dashboard/sign-out',
  'POST /dashboard/login',
  'POST /dashboard/login/second-factor',
  'POST /dashboard/login/second-factor/recovery-codes',
  'POST /dashboard/login/second-factor/off',
  'POST /dashboard/login/sessions/:id/end',
  'POST /dashboard/login/sessions/end-others',
];

/** The members of the matrix, and nobody else, so that an owner is never the last one. */
const people: Readonly<Record<MemberRole, TestMember>> = {
  member: await signedIn('member'),
  admin: await signedIn('admin'),
  owner: await signedIn('owner'),
};

/**
 * A new application with what requests work on.
 * @param row makes only what the requests of this row need, and leaves the other ids empty
 */
async function newPlace(environment: Environment, row?: Row): Promise<Place> {
  const { id, key } = await application(environment);
  const ifUsed = async (part: RegExp | readonly (keyof Place)[], make: () => Promise<string>): Promise<string> => {
    if (row === undefined) return make();
    const { subject } = row;
    const isUsed = part instanceof RegExp ? part.test(row.route) : subject !== undefined && part.includes(subject);
    return isUsed ? make() : '';
  };
  await key('account');
  const invite = async (role: MemberRole): Promise<string> => {
    const invitation = newId('inv', Date.now());
    await rooms.people.invitations.create(actorOf(await newMember('owner')), { id: invitation, role, label: 'x' });
    return invitation;
  };
  // The mock cannot be linked in production.
  const link = async () => (await linkAccount(rooms, id, { provider: 'imap' })).id;
  const account = await link();
  const mockAccount = await ifUsed(/mailbox/, async () => (await linkAccount(rooms, id)).id);
  let secretsVersion = '';
  const endpoint = await ifUsed(/:endpoint/, async () => {
    const fields = { url: 'https://app.example/', triggerEvents: ['*'], accountIds: null, description: null };
    const made = await rooms.endpoints.create(id, { ...fields, enabled: true });
    secretsVersion = secretsVersionOf(made.endpoint);
    return made.endpoint.id;
  });
  return {
    endpoint,
    secretsVersion,
    event: await ifUsed(/:event/, () => rooms.events.addTest(id, endpoint, db)),
    scope: await ifUsed(/:scope/, async () => (await rooms.scopes.create(id, { name: 's', reference: null })).id),
    domain: await ifUsed(['domain'], async () => {
      const domain = await rooms.domains.create(id, 'connect.app.example', 'auth');
      if (domain.kind !== 'created') throw new Error('The domain is not new.');
      return domain.domain.id;
    }),
    application: id,
    account,
    pausedAccount: await ifUsed(['pausedAccount'], async () => {
      const paused = await link();
      await rooms.accounts.update(id, paused, { paused: true });
      return paused;
    }),
    mockAccount,
    message: await ifUsed(/:message/, async () =>
      providerIdOf(await rooms.mockMailbox.deliver(mockAccount, HTML_EMAIL)),
    ),
    email: await ifUsed(/:email/, () => unknownEmail(service, id, account)),
    member: await ifUsed(['member'], async () => (await protectedMember('member')).id),
    owner: await ifUsed(['owner'], async () => (await protectedMember('owner')).id),
    invitation: await ifUsed(['invitation'], () => invite('member')),
    ownerInvitation: await ifUsed(['ownerInvitation'], () => invite('owner')),
    serviceKey: (await rooms.keys.listServiceKeys(id, PAGE))[0]?.id ?? '',
    accountKey: (await rooms.keys.list(id, {}, PAGE))[0]?.id ?? '',
  };
}

async function protectedMember(role: MemberRole) {
  const member = await newMember(role);
  const { secondFactors } = rooms.people;
  await secondFactors.setUp(member, secondFactors.offer(member.id), { step: 1, replaces: undefined, sessionId: '' });
  return member;
}

const HTML_EMAIL = {
  ...{ messageId: '<1@mock.test>', thread: 't', recipients: ['ann@example.com'], size: 100 },
  raw: Buffer.from('Subject: S\r\nContent-Type: text/html\r\n\r\n<p>Hi</p>'),
};

const places = new Map<Environment, Promise<Place>>();

/** The place of an environment for requests that change nothing. */
function unchanged(environment: Environment): Promise<Place> {
  const place = places.get(environment) ?? newPlace(environment);
  places.set(environment, place);
  return place;
}

/** The tables that people change. A delivery is a job. */
const WATCHED = [
  ...['applications', 'api_keys', 'members', 'invitations', 'organizations', 'audit_log', 'second_factors'],
  ...['accounts', 'auth_links', 'events', 'headgate.adjustments', 'sends'],
  ...['webhook_endpoints', 'scopes', 'domains', 'jobs'],
];
/**
 * A digest of each table, which the database makes: the tables grow with each test. Of emails it is the state, since the
 * sweeper notes its attempts.
 */
const everything = async (): Promise<string> => {
  const digests = WATCHED.map(
    (table) =>
      sql`select ${table}::text as name, md5(string_agg(row, ',' order by row)) as digest
        from (select ${table === 'sends' ? sql`id || state` : sql`t::text`} as row from ${sql.table(table)} as t) as rows`,
  );
  return JSON.stringify((await sql`${sql.join(digests, sql` union all `)}`.execute(db)).rows);
};

/** Makes a request as a person whose browser sends what the form of another person would send. */
async function attempt(row: Row, { browser, sessionId }: TestMember, place: Place) {
  const [method, pattern = ''] = row.route.split(' ');
  const subject = row.subject === undefined ? undefined : place[row.subject];
  const path = pattern
    .replace(':application', place.application)
    .replace(':account', subject ?? place.account)
    .replace(/:(email|endpoint|event|message|scope)\b/g, (_, name: keyof Place) => place[name])
    .replace(':provider', 'mock')
    .replace(/:(id|key)/, subject ?? '');
  if (method === 'GET') return browser.request(path);
  const fields = typeof row.fields === 'function' ? row.fields(place) : row.fields;
  const id = row.creates === undefined ? undefined : newId(row.creates, Date.now());
  const token = csrf.tokenOf(sessionId, id === undefined ? path : `${path} ${id}`);
  const body = new URLSearchParams({ _csrf: token, ...(id === undefined ? {} : { _id: id }), ...fields });
  return browser.request(path, { method: 'POST', body });
}

const CELLS = [
  ['member', 'development'],
  ['member', 'production'],
  ['admin', 'production'],
  ['owner', 'production'],
] as const;

describe.each(ROWS)('$what', (row) => {
  test.each(CELLS.map((cell, index) => [...cell, row.may.split(' ')[index] === 'yes'] as const))(
    '%s, with an application of %s: %s',
    async (role, environment, isAllowed) => {
      const changes = isAllowed && row.route.startsWith('POST') && row.isHarmless === undefined;
      // What changes nothing can be done to the same place again and again.
      const place = await (changes ? newPlace(environment, row) : unchanged(environment));
      const isCompared = !isAllowed || changes;
      const before = isCompared ? await everything() : undefined;
      const { status, html } = await attempt(row, people[role], place);
      if (!isAllowed) {
        expect([status, html]).toEqual([403, expect.stringContaining('Your role does not allow this')]);
        expect(await everything()).toBe(before);
        return;
      }
      const isShown = row.creates !== undefined || row.route.startsWith('GET');
      expect(status).toBe(row.answers ?? (isShown ? 200 : 303));
      if (isCompared) expect(await everything()).not.toBe(before);
    },
  );
});

test('without a session, every page and every form leads to the sign-in, and changes nothing', async () => {
  const place = await newPlace('development');
  const before = await everything();
  const { browser } = peopleOf(service);
  for (const row of ROWS) {
    const seen = await attempt(row, { ...people.owner, browser: browser() }, place);
    expect([row.what, seen.status, seen.location?.replace(/\?.*/, '')]).toEqual([row.what, 303, '/dashboard/sign-in']);
  }
  expect(await everything()).toBe(before);
});

test('a form with the token of another session, of another form, or sent by another site changes nothing', async () => {
  const place = await newPlace('development');
  const before = await everything();
  const path = `/dashboard/members/${place.member}/remove`;
  const { browser, sessionId } = people.owner;
  const send = async (token: string, headers: Record<string, string> = {}): Promise<number> =>
    (await browser.request(path, { method: 'POST', body: new URLSearchParams({ _csrf: token }), headers })).status;
  const own = csrf.tokenOf(sessionId, path);
  expect(await send(csrf.tokenOf(people.admin.sessionId, path))).toBe(403);
  expect(await send(csrf.tokenOf(sessionId, `/dashboard/members/${place.owner}/remove`))).toBe(403);
  expect(await send('')).toBe(403);
  expect(await send(own, { 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await send(own, { 'sec-fetch-site': 'same-site' })).toBe(403);
  expect(await send(own, { origin: 'https://evil.example' })).toBe(403);
  expect(await everything()).toBe(before);
  expect(await send(own, { 'sec-fetch-site': 'same-origin' })).toBe(303);
});

/** Fields of forms besides the fields of their rows, and parameters that pages read. */
const OTHER_FIELDS = ['reference', 'description', 'domain', 'label'];
const QUERIES = ['account', 'before', 'checked', 'done', 'live', 'provider', 'scope_id', 'search', 'since', 'state'];

test('NUL in a field, in the query or in the path is an error of no page and no form', async () => {
  const place = await newPlace('development');
  const { owner } = people;
  // Some rows share their form.
  const routes = new Set<string>();
  for (const row of ROWS) {
    if (routes.has(row.route)) continue;
    routes.add(row.route);
    const given = typeof row.fields === 'function' ? row.fields(place) : (row.fields ?? {});
    const isPage = row.route.startsWith('GET');
    const names = isPage ? [] : [...new Set([...Object.keys(given), ...OTHER_FIELDS])];
    const paths = [
      ...(row.route.match(/:\w+/g) ?? []).map((id) => row.route.replace(id, '%00')),
      // After a form, the page that shows its result reads no more of the query.
      ...(isPage || NIGHTLY ? QUERIES : ['done', 'live']).map((name) => `${row.route}?${name}=a%00b`),
    ];
    const attempts: readonly Partial<Row>[] = [
      ...names.map((name) => ({ fields: { ...given, [name]: `${given[name] ?? 'a'}\0` } })),
      ...paths.map((route) => ({ route: route as Row['route'] })),
    ];
    for (const each of attempts)
      expect((await attempt({ ...row, ...each }, owner, place)).status, JSON.stringify(each)).toBeLessThan(500);
  }
});

test('an application of another organization does not exist', async () => {
  const { id } = await application();
  const other = 'org_00000000000000000000000001';
  await db.insertInto('organizations').values({ id: other, name: 'Other' }).execute();
  await db.updateTable('applications').set({ organization_id: other }).where('id', '=', id).execute();
  expect((await people.owner.browser.request(`/dashboard/applications/${id}`)).status).toBe(404);
  expect((await people.owner.browser.request('/dashboard/applications/app_1')).status).toBe(404);
});

test('the matrix has every page and every form of the dashboard', () => {
  const known = new Set([...OF_EVERYBODY, ...ROWS.map(({ route }) => route)]);
  const routes = routesOf(app.printRoutes({ commonPrefix: false })).filter(
    (route) => / \/dashboard/.test(route) && !route.includes('/assets/'),
  );
  expect(routes.length).toBeGreaterThan(20);
  expect([...new Set(routes)].sort()).toEqual([...known].sort());
});

/** The routes of a tree that Fastify has printed. */
function routesOf(tree: string): readonly string[] {
  const parents: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] = /^([│ ]*)[├└]── (\S+)(?: \(([^)]+)\))?/.exec(line) ?? [];
    const depth = indent.length / 4;
    const path = `${parents.slice(0, depth).join('')}${part}`;
    parents.length = depth;
    parents.push(part);
    return methods
      .split(', ')
      .filter((method) => method === 'GET' || method === 'POST')
      .map((method) => `${method} ${path.replaceAll('//', '/').replace(/\/$/, '')}`);
  });
}
