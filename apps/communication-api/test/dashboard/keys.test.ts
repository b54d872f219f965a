import { describe, expect, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, url, application } = service;
const { signedIn } = peopleOf(service);

const tokenIn = (html: string): string => /<code>(ck_\w+)<\/code>/.exec(html)?.[1] ?? '';
const day = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

test('an Admin creates an application, whose environment stays', async () => {
  const { browser: admin } = await signedIn('admin');
  await admin.open('/dashboard');
  await admin.submit('/applications', { name: '', environment: 'staging' });
  expect(admin.text).toContain('Enter a name.');
  expect(admin.text).toContain('Choose one of these.');
  await admin.submit('/applications', { name: 'Shop', environment: 'production' });
  expect(admin.path).toMatch(/^\/dashboard\/applications\/app_\w{26}$/);
  expect(admin.text).toContain('Shop Production');
  expect(admin.text).toContain('There is no service key.');
  await admin.open('/dashboard');
  expect(admin.text).toContain('Shop');
  await admin.open('/dashboard/audit');
  expect(admin.text).toContain('created an application: Shop (production)');
});

describe.each([
  ['service', 'production', 'ck_svc_live_'],
  ['account', 'development', 'ck_acc_dev_'],
] as const)('a %s key of a %s application', (kind, environment, mark) => {
  test('is shown once, works, and is refused as soon as it is revoked', async () => {
    const { id } = await application(environment);
    const { browser: admin } = await signedIn('admin');
    await admin.open(`/dashboard/applications/${id}`);
    const { path, body } = admin.form(`/${kind}-keys`, { name: 'Mailer' });
    const seen = await admin.request(path, { method: 'POST', body });
    const token = tokenIn(seen.html);
    expect([seen.status, token]).toEqual([200, expect.stringMatching(new RegExp(`^${mark}\\w{49}$`))]);
    expect(seen.headers.get('cache-control')).toBe('no-store');
    const call = clientOf(url, token);
    expect((await call('GET', '/v2/accounts')).status).toBe(200);
    expect((await call('GET', '/v2/scopes')).status).toBe(kind === 'service' ? 200 : 403);
    // A reload sends the form again.
    expect((await admin.request(path, { method: 'POST', body })).status).toBe(409);
    await admin.open(`/dashboard/applications/${id}`);
    expect(admin.text).toContain('Mailer');
    expect(admin.page.html).not.toContain(token);
    const revoke = /action="([^"]*\/revoke)"/g;
    const all = [...admin.page.html.matchAll(revoke)].map(([, action = '']) => action);
    const keys = kind === 'service' ? await rooms.keys.listServiceKeys(id, PAGE) : await rooms.keys.list(id, {}, PAGE);
    const key = keys.find(({ name }) => name === 'Mailer')?.id ?? '';
    expect(all.some((action) => action.endsWith(`/${kind}-keys/${key}/revoke`))).toBe(true);
    await admin.submit(`/${kind}-keys/${key}/revoke`);
    expect(admin.text).toContain('The key is revoked.');
    expect((await call('GET', '/v2/accounts')).status).toBe(401);
  });
});

const PAGE = { limit: 50, offset: 0, before: undefined };

test('a scoped key reaches the accounts of its scope, and a disabled scope is not offered', async () => {
  const { id, token } = await application();
  const service_ = clientOf(url, token);
  const scope = (await service_('POST', '/v2/scopes', { name: 'Customer 7' })).body.id;
  const { browser: member } = await signedIn('member');
  await member.open(`/dashboard/applications/${id}`);
  const { path, body } = member.form('/account-keys', { name: 'Scoped', access: scope });
  const seen = await member.request(path, { method: 'POST', body });
  expect(tokenIn(seen.html)).toMatch(/^ck_scp_dev_/);
  await member.open(`/dashboard/applications/${id}`);
  expect(member.text).toContain('scope Customer 7');
  await service_('POST', `/v2/scopes/${scope}/disable`);
  await member.open(`/dashboard/applications/${id}`);
  expect(member.text).not.toContain('Only the scope Customer 7');
  await member.submit('/account-keys', { name: 'Late', access: scope });
  expect(member.text).toContain('Choose one of these.');
});

test.each([
  ['', 'Enter a date'],
  ['2020-01-01', 'Enter a date'],
  ['2027-02-31', 'Enter a date'],
  [day(365 * 6), 'Enter a date'],
])('the last day %j is a fault', async (expires_on, message) => {
  const { id } = await application();
  const { browser: admin } = await signedIn('admin');
  await admin.open(`/dashboard/applications/${id}`);
  await admin.submit('/service-keys', { name: 'Mailer', expires_on });
  expect([admin.page.status, admin.text]).toEqual([422, expect.stringContaining(message)]);
  expect(admin.page.html).toContain('href="#field-service-expires_on"');
  expect(admin.page.html).toContain('value="Mailer"');
});

test('a key of one kind is not revoked as one of the other, and not in another application', async () => {
  const [own, other] = [await application(), await application()];
  const { browser: admin, sessionId } = await signedIn('admin');
  const serviceKey = (await rooms.keys.listServiceKeys(own.id, PAGE))[0]?.id ?? '';
  await own.key('account');
  const accountKey = (await rooms.keys.list(own.id, {}, PAGE))[0]?.id ?? '';
  const { Csrf } = await import('../../src/wizard/csrf.ts');
  const csrf = new Csrf(rooms.envelope);
  for (const path of [
    `/dashboard/applications/${own.id}/account-keys/${serviceKey}/revoke`,
    `/dashboard/applications/${own.id}/service-keys/${accountKey}/revoke`,
    `/dashboard/applications/${other.id}/service-keys/${serviceKey}/revoke`,
    `/dashboard/applications/${own.id}/service-keys/nothing/revoke`,
  ]) {
    const body = new URLSearchParams({ _csrf: csrf.tokenOf(sessionId, path) });
    expect([path, (await admin.request(path, { method: 'POST', body })).status]).toEqual([path, 404]);
  }
  expect((await clientOf(url, own.token)('GET', '/v2/scopes')).status).toBe(200);
});

test('the id of a new key is the one of the form, not one that a person chooses', async () => {
  const { id } = await application();
  const { browser: admin } = await signedIn('admin');
  await admin.open(`/dashboard/applications/${id}`);
  const { path, body } = admin.form('/service-keys', { name: 'Mailer', _id: 'key_00000000000000000000000000' });
  expect((await admin.request(path, { method: 'POST', body })).status).toBe(403);
});

test('a list of many keys has a next page', async () => {
  const { id, key } = await application();
  for (let i = 0; i < 52; i++) await key('account');
  const { browser: admin } = await signedIn('admin');
  await admin.open(`/dashboard/applications/${id}`);
  const next = /href="(\?account_before=key_\w+)"/.exec(admin.page.html)?.[1] ?? '';
  await admin.open(`/dashboard/applications/${id}${next}`);
  expect([...admin.page.html.matchAll(/account-keys\/key_\w+\/revoke/g)]).toHaveLength(2);
});
