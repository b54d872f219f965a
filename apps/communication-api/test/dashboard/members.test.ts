import { expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { actorOf } from '../../src/people/member.ts';
import { ORGANIZATION_ID } from '../../src/people/organizations.ts';
import { peopleOf } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const DAY = 86_400_000;

let skew = 0;
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { clock: () => Date.now() + skew });
const { rooms } = service;
const { browser, newMember, signedIn } = peopleOf(service);
const { audit, audited, invitations, members, organizations } = rooms.people;

const rolesOf = async (): Promise<Record<string, string>> =>
  Object.fromEntries((await members.list(ORGANIZATION_ID)).map(({ id, role }) => [id, role]));
const linkIn = (html: string): string => /<code>(http[^<]*)<\/code>/.exec(html)?.[1] ?? '';

test('an invitation is shown once, makes a member of its role, and ends when it was used', async () => {
  const { browser: admin, member } = await signedIn('admin');
  await admin.open('/dashboard/members');
  const { path, body } = admin.form('/invitations', { label: 'Bob', role: 'member' });
  const seen = await admin.request(path, { method: 'POST', body });
  expect(seen.status).toBe(200);
  const link = linkIn(seen.html);
  expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\/join\/[\w-]{43}$/);
  // A reload sends the form again.
  const again = await admin.request(path, { method: 'POST', body });
  expect([again.status, again.html]).toEqual([409, expect.stringContaining('This was done already')]);
  await admin.open('/dashboard/members');
  expect(admin.text).toContain('Bob Member');
  const bob = browser();
  await bob.open(new URL(link).pathname);
  expect(bob.text).toContain('You become Member of My organization.');
  await bob.submit('', { name: 'Bob', email: member.email, password: secret() });
  expect(bob.text).toContain('A login with this address exists already.');
  await bob.submit('', { name: 'Bob', email: 'bob@example.com', password: secret() });
  expect(bob.text).toContain('Bob Member');
  await admin.open('/dashboard/members');
  expect(admin.text).toContain('There is no open invitation.');
  expect(admin.text).toContain('bob@example.com');
});

test('an invitation ends after seven days, or when it is withdrawn', async () => {
  const { browser: owner } = await signedIn('owner');
  const links: string[] = [];
  for (const label of ['late', 'withdrawn']) {
    await owner.open('/dashboard/members');
    const { path, body } = owner.form('/invitations', { label, role: 'owner' });
    links.push(new URL(linkIn((await owner.request(path, { method: 'POST', body })).html)).pathname);
  }
  await owner.open('/dashboard/members');
  // The newest one is the first of the list.
  await owner.submit('/withdraw');
  expect(owner.text).toContain('The invitation is withdrawn.');
  const client = browser();
  await client.open(links[1] ?? '');
  expect(client.page.status).toBe(410);
  await client.open(links[0] ?? '');
  expect(client.page.status).toBe(200);
  skew = 7 * DAY;
  await client.open(links[0] ?? '');
  expect(client.page.status).toBe(410);
  skew = 0;
});

test('a role is changed, and a removed member is signed out at once', async () => {
  const { browser: admin } = await signedIn('admin');
  const { browser: client, member } = await signedIn('member');
  await admin.open('/dashboard/members');
  await admin.submit(`${member.id}/role`, { role: 'admin' });
  expect(admin.text).toContain('The role is changed.');
  await client.open('/dashboard/members');
  expect(client.path).toBe('/dashboard/members');
  await admin.submit(`${member.id}/remove`);
  expect(admin.text).toContain('The member is removed');
  await client.open('/dashboard');
  expect(client.path).toBe('/dashboard/sign-in');
});

test('the invitations of a member end when the role changes', async () => {
  const { browser: owner } = await signedIn('owner');
  const { browser: admin, member } = await signedIn('admin');
  await admin.open('/dashboard/members');
  const { path, body } = admin.form('/invitations', { label: 'Eve', role: 'admin' });
  const link = linkIn((await admin.request(path, { method: 'POST', body })).html);
  await owner.open('/dashboard/members');
  await owner.submit(`${member.id}/role`, { role: 'member' });
  const eve = browser();
  await eve.open(new URL(link).pathname);
  expect(eve.page.status).toBe(410);
});

test('a request that waits while its person loses the role changes nothing', async () => {
  const { browser: owner } = await signedIn('owner');
  const [rogue, gone] = [await newMember('owner'), await newMember('admin')];
  await owner.open('/dashboard/members');
  await owner.submit(`${rogue.id}/role`, { role: 'member' });
  await owner.open('/dashboard/members');
  await owner.submit(`${gone.id}/remove`);
  const before = await rolesOf();
  for (const actor of [actorOf(rogue), actorOf(gone)]) {
    const id = newId('inv', Date.now());
    const late = [
      () => members.setRole(actor, rogue.id, 'owner', () => true),
      () => members.remove(actor, rogue.id, () => true),
      () => invitations.create(actor, { id, role: 'admin', label: 'late' }),
      () => invitations.withdraw(actor, id, () => true),
      () => organizations.rename(actor, 'Late'),
      () => audited(actor, async () => [undefined, undefined]),
    ];
    for (const request of late) await expect(request()).rejects.toMatchObject({ status: 403 });
  }
  expect(await rolesOf()).toEqual(before);
});

test('the last Owner stays, also if two of them leave at the same time', async () => {
  for (const [id, role] of Object.entries(await rolesOf()))
    if (role === 'owner') await service.db.deleteFrom('members').where('id', '=', id).execute();
  const { browser: ann, member } = await signedIn('owner');
  await ann.open('/dashboard/members');
  for (const [form, values] of [
    [`${member.id}/remove`, {}],
    [`${member.id}/role`, { role: 'member' }],
  ] as const) {
    await ann.open('/dashboard/members');
    await ann.submit(form, values);
    expect([ann.page.status, ann.text]).toEqual([422, expect.stringContaining('This is the last Owner.')]);
  }
  const { browser: bob, member: other } = await signedIn('owner');
  await bob.open('/dashboard/members');
  await ann.open('/dashboard/members');
  await Promise.all([ann.submit(`${member.id}/role`, { role: 'admin' }), bob.submit(`${other.id}/remove`)]);
  expect(Object.values(await rolesOf()).filter((role) => role === 'owner')).toHaveLength(1);
});

test('the organization gets another name', async () => {
  const { browser: owner } = await signedIn('owner');
  await owner.open('/dashboard/members');
  await owner.submit('/organization', { organization: 'Fish & Sons <Ltd>' });
  expect(owner.page.html).toContain('Fish &amp; Sons &lt;Ltd>');
  expect(await organizations.find(ORGANIZATION_ID)).toMatchObject({ name: 'Fish & Sons <Ltd>' });
  await owner.submit('/organization', { organization: '' });
  expect(owner.text).toContain('Enter a name.');
});

test('the audit log says who has done what, also after a member was removed', async () => {
  const { browser: owner, member } = await signedIn('owner');
  const gone = await newMember('member');
  await owner.open('/dashboard/members');
  await owner.submit(`${gone.id}/remove`);
  await owner.open('/dashboard/audit');
  expect(owner.text).toContain(`${member.name} removed a member: ${gone.name} (${gone.email})`);
  for (let i = 0; i < 60; i++)
    await audit.add(
      { id: null, organizationId: ORGANIZATION_ID, name: 'Operator', role: null },
      { action: 'invited', subject: `${i}` },
      service.db,
    );
  await owner.open('/dashboard/audit');
  const older = /href="(\?before=aud_\w+)"/.exec(owner.page.html)?.[1] ?? '';
  await owner.open(`/dashboard/audit${older}`);
  expect(owner.text).toContain(`removed a member: ${gone.name}`);
  skew = 401 * DAY;
  await audit.deleteOld(500);
  expect(await audit.list(ORGANIZATION_ID, { limit: 10, offset: 0, before: undefined })).toEqual([]);
  skew = 0;
});
