import { beforeEach, describe, expect, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { startService } from '../support/service.ts';

const DAY_MS = 86_400_000;
const AUTH_HOST = 'auth.example.com';
const TRACKING_HOST = 'links.example.com';

const dns = await startDnsServer();
const { resolver } = dns;
let now = Date.now();
const service = await startService(
  { BASE_URL: 'https://api.example.com', AUTH_URL: `https://${AUTH_HOST}`, TRACKING_URL: `https://${TRACKING_HOST}` },
  { resolver, clock: () => now },
);
const { url, application, rooms, logged } = service;
const { id: applicationId, token, key } = await application();
const other = await application();
const call = clientOf(url, token);
const callOther = clientOf(url, other.token);

beforeEach(() => {
  dns.records = {};
  dns.isSilent = false;
});

let count = 0;
/** A domain whose records the test can create. */
async function newDomain(purpose = 'auth', { client = call, host = `connect${++count}.app.example` } = {}) {
  // The ids of one millisecond have no order.
  now += 1;
  const { status, body } = await client('POST', '/v2/domains', { host, purpose });
  expect(status).toBe(200);
  const [cname, txt] = body.records;
  const records = { [`CNAME ${cname.name}`]: [cname.value], [`TXT ${txt.name}`]: [txt.value] };
  return { id: body.id as string, host, path: `/v2/domains/${body.id}`, body, records };
}

const createRecords = (...domains: readonly { readonly records: Readonly<Record<string, readonly string[]>> }[]) => {
  for (const { records } of domains)
    for (const [query, values] of Object.entries(records))
      dns.records = { ...dns.records, [query]: [...(dns.records[query] ?? []), ...values] };
};

/** The status of a domain after the daily checks of so many days. */
async function afterDays(path: string, days: number): Promise<string> {
  for (let day = 0; day < days; day++) {
    now += DAY_MS + 1;
    await rooms.domainChecks.run();
  }
  return (await call('GET', path)).body.status;
}

const verified = async (purpose = 'auth') => {
  const domain = await newDomain(purpose);
  createRecords(domain);
  expect((await call('POST', `${domain.path}/verify`)).body.status).toBe('verified');
  return domain;
};

const linkOn = async (domain: string) => {
  const { status, body } = await call('POST', '/v2/auth/link', {
    ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', domain },
    expires_on: new Date(now + 60_000).toISOString(),
  });
  return status === 200 ? new URL(body.link).host : body.detail;
};

/** The status of the wizard's answer on a host. */
const wizardOn = async (host: string): Promise<number> => {
  const { body } = await call('POST', '/v2/auth/link', {
    ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', domain: host },
    expires_on: new Date(now + 60_000).toISOString(),
  });
  return (await service.app.inject({ url: new URL(body.link).pathname, headers: { host } })).statusCode;
};

const ask = async (domain: string): Promise<number> =>
  (await fetch(`${url}/internal/tls-ask?domain=${encodeURIComponent(domain)}`)).status;

describe('a custom domain', () => {
  test('is added with the records to create, read, listed and deleted', async () => {
    const { id, host, body, path } = await newDomain('tracking', { host: 'LINKS.App.example.' });
    expect(body).toEqual({
      object: 'Domain',
      id: expect.stringMatching(/^dom_/),
      application_id: applicationId,
      host: 'links.app.example',
      purpose: 'tracking',
      status: 'pending',
      records: [
        { type: 'CNAME', name: 'links.app.example', value: TRACKING_HOST, status: 'unchecked' },
        {
          type: 'TXT',
          name: '_communication-api.links.app.example',
          value: expect.stringMatching(/^ca-verify=[0-9a-f]{32}$/),
          status: 'unchecked',
        },
      ],
      checked_at: null,
      created_at: new Date(now).toISOString(),
    });
    expect((await newDomain()).body.records[0].value).toBe(AUTH_HOST);
    expect((await call('GET', path)).body).toEqual(body);
    const page = (await call('GET', '/v2/domains?limit=1')).body;
    expect(page).toMatchObject({ object: 'DomainList', has_more: true });
    expect((await call('GET', `/v2/domains?limit=1&cursor=${page.next_cursor}`)).body.data).toEqual([body]);
    expect((await call('POST', '/v2/domains', { host, purpose: 'auth' })).body).toMatchObject({
      status: 409,
      type: 'errors/already_exists',
    });
    expect((await call('DELETE', path)).body).toEqual({ object: 'DomainDeleted', id });
    for (const [method, at] of [
      ['GET', path],
      ['DELETE', path],
      ['POST', `${path}/verify`],
    ] as const)
      expect((await call(method, at)).status).toBe(404);
  });

  test('of another application is not found', async () => {
    const { path, host } = await verified();
    for (const [method, at] of [
      ['GET', path],
      ['DELETE', path],
      ['POST', `${path}/verify`],
    ] as const)
      expect((await callOther(method, at)).status).toBe(404);
    expect((await callOther('GET', '/v2/domains')).body.data).toEqual([]);
    expect(await rooms.domains.findHost(other.id, host, 'auth')).toBeUndefined();
  });

  test.each([
    ...[
      {},
      { host: 'a.example' },
      { host: 'a.example', purpose: 'mail' },
      { host: 'a.example', purpose: 'auth', status: 'verified' },
    ],
    ...[
      '',
      'localhost',
      '127.0.0.1',
      '*.a.example',
      'a.example/b',
      'https://a.example',
      AUTH_HOST,
      'API.example.com.',
      TRACKING_HOST,
    ].map((host) => ({ host, purpose: 'auth' })),
  ])('%j is a 422', async (body) => {
    expect((await call('POST', '/v2/domains', body)).status).toBe(422);
  });

  test('is one of 100 at most', async () => {
    const many = await application();
    const client = clientOf(url, many.token);
    for (let i = 0; i < 99; i++) await rooms.domains.create(many.id, `n${i}.many.example`, 'auth');
    const hosts = ['a', 'b', 'c'].map((name) => `${name}.more.example`);
    const creations = await Promise.all(hosts.map((host) => rooms.domains.create(many.id, host, 'auth')));
    expect(creations.map(({ kind }) => kind).sort()).toEqual(['created', 'too many', 'too many']);
    expect((await client('POST', '/v2/domains', { host: 'd.more.example', purpose: 'auth' })).body).toMatchObject({
      status: 409,
      detail: 'Your application has 100 domains, which is the limit. Delete one first.',
    });
  });

  test('is for service keys', async () => {
    const { path } = await newDomain();
    const client = clientOf(url, await key('account'));
    for (const [method, at] of [
      ['POST', '/v2/domains'],
      ['GET', '/v2/domains'],
      ['GET', path],
      ['POST', `${path}/verify`],
      ['DELETE', path],
    ] as const)
      expect((await client(method, at)).body).toMatchObject({ status: 403, type: 'errors/insufficient_permissions' });
  });
});

describe('a check', () => {
  test('needs both records, and says which one is missing', async () => {
    const domain = await newDomain();
    const [cname = '', txt = ''] = Object.keys(domain.records);
    const statuses = async (records: typeof dns.records) => {
      dns.records = records;
      const { body } = await call('POST', `${domain.path}/verify`);
      expect((await call('GET', domain.path)).body).toEqual(body);
      return [body.status, ...body.records.map(({ status }: { status: string }) => status)];
    };
    const { [cname]: target = [], [txt]: value = [] } = domain.records;
    expect(await statuses({})).toEqual(['pending', 'missing', 'missing']);
    expect(await statuses({ [cname]: target })).toEqual(['pending', 'found', 'missing']);
    expect(await statuses({ [txt]: value })).toEqual(['pending', 'missing', 'found']);
    expect(await statuses({ [cname]: ['evil.example'], [txt]: value })).toEqual(['pending', 'missing', 'found']);
    expect(await statuses({ [cname]: target, [txt]: ['ca-verify=', 'v=spf1 -all', `${value}x`] })).toEqual([
      'pending',
      'found',
      'missing',
    ]);
    expect(await statuses({ [cname]: target, [txt.toUpperCase()]: value })).toEqual(['pending', 'found', 'missing']);
    // Other texts may be there, and names have no case.
    expect(await statuses({ [cname]: [AUTH_HOST.toUpperCase()], [txt]: ['v=spf1 -all', ...value] })).toEqual([
      'verified',
      'found',
      'found',
    ]);
    // A check that was asked for takes nothing away.
    expect(await statuses({})).toEqual(['verified', 'missing', 'missing']);
  });

  test('by a name server that does not answer finds nothing', async () => {
    const domain = await newDomain();
    createRecords(domain);
    dns.isSilent = true;
    expect((await call('POST', `${domain.path}/verify`)).body.status).toBe('pending');
  });

  test('does not accept the records of another application', async () => {
    const host = 'shared.app.example';
    const mine = await newDomain('auth', { host });
    const theirs = await newDomain('auth', { host, client: callOther });
    createRecords(mine);
    expect((await callOther('POST', `${theirs.path}/verify`)).body.status).toBe('pending');
    expect((await call('POST', `${mine.path}/verify`)).body.status).toBe('verified');
  });

  test('a host that is named first is not taken: who proves it first has it', async () => {
    const host = 'wanted.app.example';
    const squatter = await newDomain('auth', { host, client: callOther });
    const owner = await newDomain('auth', { host });
    createRecords(owner);
    expect((await call('POST', `${owner.path}/verify`)).body.status).toBe('verified');
    createRecords(squatter);
    expect((await callOther('POST', `${squatter.path}/verify`)).body).toMatchObject({
      status: 409,
      type: 'errors/conflict',
    });
  });

  test('applications that prove a host at the same time: one of them has it', async () => {
    const host = 'raced.app.example';
    const domains = [await newDomain('auth', { host }), await newDomain('auth', { host, client: callOther })];
    createRecords(...domains);
    const answers = await Promise.all(
      [call, callOther].flatMap((client, index) =>
        [client, client].map((each) => each('POST', `${domains[index]?.path}/verify`)),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409]);
  });
});

describe('the daily check', () => {
  test('three failures in a row make a domain fail, and one success makes it work again', async () => {
    const { path, host } = await verified();
    const { records } = dns;
    dns.records = {};
    expect(await afterDays(path, 2)).toBe('verified');
    dns.records = records;
    expect(await afterDays(path, 1)).toBe('verified');
    dns.records = {};
    expect(await afterDays(path, 2)).toBe('verified');
    expect(await linkOn(host)).toBe(host);
    expect(await afterDays(path, 1)).toBe('failing');
    expect(logged()).toContain('a custom domain fails: new links use the default host');
    dns.records = records;
    expect(await afterDays(path, 1)).toBe('verified');
    expect(logged()).toContain('a custom domain works again');
    expect(await linkOn(host)).toBe(host);
  });

  test('is made once a day by all processes together, and not for a domain that was never verified', async () => {
    const pending = await newDomain();
    const { host } = await verified();
    now += DAY_MS + 1;
    const before = dns.queries.length;
    await Promise.all([rooms.domainChecks.run(), rooms.domainChecks.run()]);
    await rooms.domainChecks.run();
    const asked = dns.queries.slice(before);
    expect(asked.filter((query) => query === `CNAME ${host}`)).toHaveLength(1);
    expect(asked.filter((query) => query.includes(pending.host))).toEqual([]);
  });

  test('a failing domain can be checked at once, and is lost to an application that proves it', async () => {
    const domain = await verified();
    dns.records = {};
    expect(await afterDays(domain.path, 3)).toBe('failing');
    const theirs = await newDomain('auth', { host: domain.host, client: callOther });
    createRecords(theirs);
    expect((await callOther('POST', `${theirs.path}/verify`)).body.status).toBe('verified');
    expect((await call('GET', domain.path)).body.status).toBe('pending');
    expect(await linkOn(domain.host)).toBe('domain: not a verified wizard domain of your application.');
    const again = await verified();
    dns.records = {};
    expect(await afterDays(again.path, 3)).toBe('failing');
    createRecords(again);
    expect((await call('POST', `${again.path}/verify`)).body.status).toBe('verified');
  });
});

describe('a domain is used', () => {
  test('by links: verified its own host, failing the default host, with a line in the log', async () => {
    const { path, host } = await verified();
    const pending = await newDomain();
    const tracking = await verified('tracking');
    expect(await linkOn(`${host.toUpperCase()}.`)).toBe(host);
    for (const wrong of [pending.host, tracking.host, 'no.app.example', '', 'a/b'])
      expect(await linkOn(wrong)).toMatch(/^domain: /);
    dns.records = {};
    expect(await afterDays(path, 3)).toBe('failing');
    expect(await linkOn(host)).toBe(AUTH_HOST);
    expect(logged()).toContain('a custom domain fails: the default host is used');
  });

  test('by the wizard: an unknown host is a 421, and a failing one that is reached is served', async () => {
    const { path, host } = await verified();
    expect(await wizardOn(host)).toBe(303);
    const { body } = await call('POST', '/v2/auth/link', {
      ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', domain: host },
      expires_on: new Date(now + 6 * DAY_MS).toISOString(),
    });
    const link = new URL(body.link).pathname;
    const on = async (name: string) => (await service.app.inject({ url: link, headers: { host: name } })).statusCode;
    dns.records = {};
    expect(await afterDays(path, 3)).toBe('failing');
    expect([await on(host), await on(AUTH_HOST), await on('evil.example')]).toEqual([303, 303, 421]);
    await call('DELETE', path);
    expect([await on(host), await on(AUTH_HOST)]).toEqual([421, 303]);
  });

  test('by a proxy that asks whether it may get a certificate', async () => {
    const { path, host } = await verified();
    const pending = await newDomain();
    expect(
      await Promise.all([host, `${host}.`, host.toUpperCase(), AUTH_HOST, TRACKING_HOST, 'api.example.com'].map(ask)),
    ).toEqual(Array.from({ length: 6 }, () => 200));
    for (const wrong of [
      pending.host,
      'evil.example',
      `x.${host}`,
      'example.com',
      '127.0.0.1',
      'localhost',
      '',
      'a/b',
      "'",
    ])
      expect(await ask(wrong)).toBe(404);
    for (const query of ['', '?domain', `?domain=${host}&domain=${host}`, `?Domain=${host}`])
      expect((await fetch(`${url}/internal/tls-ask${query}`)).status).toBe(404);
    dns.records = {};
    await afterDays(path, 3);
    expect(await ask(host)).toBe(200);
    await call('DELETE', path);
    expect(await ask(host)).toBe(404);
  });
});
