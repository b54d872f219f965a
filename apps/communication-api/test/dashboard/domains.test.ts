import { expect, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { startService } from '../support/service.ts';

const dns = await startDnsServer();
const { resolver } = dns;
const service = await startService(
  { TRUSTED_PROXIES: 'loopback', AUTH_URL: 'https://auth.example.com', TRACKING_URL: 'https://links.example.com' },
  { resolver },
);
const { rooms, db, url, application } = service;
const { browser: admin } = await peopleOf(service).signedIn('admin');
const PAGE = { limit: 60, offset: 0, before: undefined };

/** A domain that an Admin has added, and how to create its records. */
async function newDomain(host: string, purpose = 'auth') {
  const { id, token } = await application();
  await admin.open('/dashboard/domains');
  await admin.submit('/domains', { host, purpose, application: id });
  const [domain] = await rooms.domains.list(id, PAGE);
  if (domain === undefined) throw new Error(admin.text);
  const records = Object.fromEntries(
    rooms.domainChecks.recordsOf(domain).map(({ type, name, value }) => [`${type} ${name}`, [value]]),
  );
  return { application: id, token, id: domain.id, domain, records };
}

const copied = (): readonly string[] =>
  [...admin.page.html.matchAll(/<code class="copied">([^<]+)<\/code>/g)].map(([, text = '']) => text);

test('a domain is added with the records to create, checked until they are there, and removed', async () => {
  const { application: applicationId, id, domain, records, token } = await newDomain('Connect.App.example.');
  expect(admin.text).toContain('The domain is added.');
  expect(copied().slice(0, 4)).toEqual([
    'connect.app.example',
    'auth.example.com',
    '_communication-api.connect.app.example',
    `ca-verify=${domain.token}`,
  ]);
  expect(admin.text).toContain('connect.app.example Pending Wizard of Test , never checked');
  await admin.submit(`/${id}/check`);
  expect(admin.text).toContain('connect.app.example: the CNAME record and the TXT record were not found.');
  const [cname = '', txt = ''] = Object.keys(records);
  dns.records = { [cname]: records[cname] ?? [] };
  await admin.submit(`/${id}/check`);
  expect(admin.text).toContain('connect.app.example: the TXT record was not found.');
  expect(admin.text).toMatch(/CNAME Found .* TXT Missing/);
  dns.records = { ...dns.records, [txt]: records[txt] ?? [] };
  await admin.submit(`/${id}/check`);
  expect(admin.text).toContain('connect.app.example is verified. Both records were found.');
  expect(await rooms.domains.isServed('connect.app.example')).toBe(true);
  const link = await clientOf(url, token)('POST', '/v2/auth/link', {
    ...{ providers: 'mock', redirect_uri: 'https://app.example/cb', domain: 'connect.app.example' },
    expires_on: new Date(Date.now() + 60_000).toISOString(),
  });
  expect(new URL(link.body.link).host).toBe('connect.app.example');
  await admin.submit(`/${id}/remove`);
  expect(admin.text).toContain('The domain is removed.');
  expect(await rooms.domains.list(applicationId, PAGE)).toEqual([]);
  await admin.open('/dashboard/audit');
  for (const text of [
    'added a domain: connect.app.example',
    'checked a domain: connect.app.example (pending)',
    'checked a domain: connect.app.example (verified)',
    'removed a domain: connect.app.example',
  ])
    expect(admin.text).toContain(text);
});

test('a host that another application has verified is not taken', async () => {
  const owner = await newDomain('wanted.app.example');
  const late = await newDomain('wanted.app.example');
  dns.records = owner.records;
  await admin.submit(`/${owner.id}/check`);
  expect(admin.text).toContain('is verified');
  dns.records = late.records;
  await admin.submit(`/${late.id}/check`);
  expect([admin.page.status, admin.text]).toEqual([
    409,
    expect.stringContaining('Another application has verified this host.'),
  ]);
});

test.each([
  ['', 'Give a host name'],
  ['localhost', 'Give a host name'],
  ['127.0.0.1', 'Give a host name'],
  ['https://a.example', 'Give a host name'],
  ['<b>.example', 'Give a host name'],
  ['AUTH.example.com.', 'This is a host of the service itself.'],
])('the host %j is a fault, and loses nothing', async (host, message) => {
  const { id } = await application();
  await admin.open('/dashboard/domains');
  await admin.submit('/domains', { host, purpose: 'tracking', application: id });
  expect([admin.page.status, admin.text]).toEqual([422, expect.stringContaining(message)]);
  expect(admin.page.html).not.toContain('<b>');
  expect(admin.page.html).toMatch(new RegExp(`<option value="${id}" selected`));
  expect(admin.page.html).toMatch(/<option value="tracking" selected/);
});

test('a domain twice, and an application or a purpose that does not exist, are faults', async () => {
  const { application: id } = await newDomain('twice.app.example', 'tracking');
  for (const [fields, status, message] of [
    [{ host: 'twice.app.example', application: id }, 409, 'Your application has a domain with this host.'],
    [{ host: 'a.app.example', application: 'app_1' }, 422, 'Choose one of these.'],
    [{ host: 'a.app.example', application: id, purpose: 'mail' }, 422, 'Choose one of these.'],
  ] as const) {
    await admin.open('/dashboard/domains');
    await admin.submit('/domains', { purpose: 'auth', ...fields });
    expect([admin.page.status, admin.text]).toEqual([status, expect.stringContaining(message)]);
  }
});

test('domains and applications of another organization do not exist', async () => {
  const { id, application: theirs } = await newDomain('theirs.app.example');
  const { path, body } = admin.form(`/${id}/remove`);
  const { path: checkPath, body: checkBody } = admin.form(`/${id}/check`);
  const other = 'org_00000000000000000000000002';
  await db.insertInto('organizations').values({ id: other, name: 'Other' }).execute();
  await db.updateTable('applications').set({ organization_id: other }).where('id', '=', theirs).execute();
  expect((await admin.request(path, { method: 'POST', body })).status).toBe(404);
  expect((await admin.request(checkPath, { method: 'POST', body: checkBody })).status).toBe(404);
  await admin.open(`/dashboard/domains?checked=${id}`);
  expect(admin.text).not.toContain('theirs.app.example');
  await admin.submit('/domains', { host: 'a.app.example', purpose: 'auth', application: theirs });
  expect([admin.page.status, admin.text]).toEqual([422, expect.stringContaining('Choose one of these.')]);
  expect(await rooms.domains.find(theirs, id)).toMatchObject({ host: 'theirs.app.example' });
});
