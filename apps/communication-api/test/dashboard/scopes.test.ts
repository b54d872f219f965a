import { expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, url, application } = service;
const { signedIn } = peopleOf(service);
const { browser: member } = await signedIn('member');
const PAGE = { limit: 60, offset: 0, before: undefined };

/** An application for development, with a scope that a Member has made. */
async function place() {
  const { id, token, key } = await application();
  await member.open(`/dashboard/applications/${id}/scopes`);
  await member.submit('/scopes', { name: 'Customer 7', reference: 'c-7' });
  const scope = (await rooms.scopes.list(id, PAGE))[0]?.id ?? '';
  return { id, token, key, scope, path: `/dashboard/applications/${id}/scopes/${scope}` };
}

test('a scope is created, listed with its accounts and keys, and changed', async () => {
  const { id, key, scope, path } = await place();
  expect([member.path, member.text]).toEqual([path, expect.stringContaining('The scope is created.')]);
  await linkAccount(rooms, id, { scopeId: scope });
  const removed = await linkAccount(rooms, id, { scopeId: scope });
  await rooms.accounts.remove(id, removed.id);
  await linkAccount(rooms, id);
  await key('scoped', scope);
  await key('scoped', scope);
  await key('account');
  await member.open(`/dashboard/applications/${id}/scopes`);
  expect(member.text).toContain('Customer 7 c-7 , 1 account, 2 keys');
  await member.open(path);
  expect(member.page.html).toContain(`/accounts?scope_id=${scope}"`);
  await member.submit(`/${scope}`, { name: '', reference: 'c-8' });
  expect([member.page.status, member.text]).toEqual([422, expect.stringContaining('Enter a name.')]);
  expect(member.page.html).toContain('value="c-8"');
  await member.submit(`/${scope}`, { name: 'Customer 8', reference: '' });
  expect(member.text).toContain('The scope is changed.');
  expect(await rooms.scopes.find(id, scope)).toMatchObject({ name: 'Customer 8', reference: null });
  const { browser: admin } = await signedIn('admin');
  await admin.open('/dashboard/audit');
  expect(admin.text).toContain('changed a scope: Customer 8');
});

test('the keys of a scope are refused at once while it is disabled', async () => {
  const { key, scope, path } = await place();
  const call = clientOf(url, await key('scoped', scope));
  const status = async () => (await call('GET', '/v2/accounts')).status;
  expect(await status()).toBe(200);
  await member.open(path);
  await member.submit('/disable');
  expect(member.text).toContain('Its keys are refused until it is enabled.');
  expect(await status()).toBe(403);
  await member.submit('/enable');
  expect(await status()).toBe(200);
});

test('a scope with accounts is not deleted; one without is, and its keys are revoked at once', async () => {
  const { id, key, scope, path } = await place();
  const call = clientOf(url, await key('scoped', scope));
  expect((await call('GET', '/v2/accounts')).status).toBe(200);
  await member.open(path);
  const { path: action, body } = member.form('/delete');
  const account = await linkAccount(rooms, id, { scopeId: scope });
  await member.open(path);
  expect(member.text).toContain('The scope cannot be deleted, because it has 1 account.');
  // The page was opened before the account was linked.
  const late = await member.request(action, { method: 'POST', body });
  expect([late.status, late.html]).toEqual([
    409,
    expect.stringContaining('The scope has accounts. Remove them first.'),
  ]);
  await rooms.accounts.remove(id, account.id);
  await member.open(path);
  expect(member.text).toContain('The scope is deleted, and 1 key of it revoked');
  await member.submit('/delete');
  expect(member.text).toContain('The scope is deleted, and its keys are revoked.');
  expect((await call('GET', '/v2/accounts')).status).toBe(401);
  expect((await member.request(path)).status).toBe(404);
});

test('a scope of another application does not exist', async () => {
  const [own, other] = [await place(), await place()];
  for (const scope of [other.scope, 'scp_1', 'scp_%00'])
    expect((await member.request(`/dashboard/applications/${own.id}/scopes/${scope}`)).status).toBe(404);
});
