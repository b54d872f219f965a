import { expect, test } from 'vitest';
import { peopleOf, type TestMember } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';
import { PlainBrowser } from '../wizard/plain-browser.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, url } = service;
const { sessions, audit } = rooms.people;
const { signedIn } = peopleOf(service);
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

/** Another browser of a person. */
async function elsewhere({ member, password }: TestMember): Promise<PlainBrowser> {
  const client = new PlainBrowser(url, { 'x-forwarded-for': '203.0.113.7', 'user-agent': FIREFOX });
  await client.open('/dashboard/sign-in');
  await client.submit('/sign-in', { email: member.email, password });
  return client;
}

const isSignedIn = async (client: PlainBrowser): Promise<boolean> => {
  await client.open('/dashboard');
  return client.path === '/dashboard/applications';
};

test('a person sees the own sessions with browser and address, and ends one', async () => {
  const person = await signedIn('member');
  const { browser: client } = person;
  const other = await elsewhere(person);
  await client.open('/dashboard/login/sessions');
  expect(client.text).toContain('Firefox on Linux');
  expect(client.text).toContain('from 203.0.113.7');
  expect(client.page.html.match(/>This browser</g)).toHaveLength(1);
  await client.submit('/end');
  expect(client.text).toContain('The session is ended.');
  expect([await isSignedIn(client), await isSignedIn(other)]).toEqual([true, false]);
  const [entry] = await audit.list(person.member.organization_id, { limit: 1, offset: 0, before: undefined });
  expect(entry).toMatchObject({
    action: 'ended a session',
    subject: expect.stringContaining('Firefox on Linux, 203.'),
  });
});

test('a person ends all other sessions', async () => {
  const person = await signedIn('member');
  const others = [await elsewhere(person), await elsewhere(person)];
  await person.browser.open('/dashboard/login/sessions');
  await person.browser.submit('/end-others');
  expect(person.browser.text).toContain('All other sessions are ended.');
  expect(await sessions.list(person.member.id)).toMatchObject([{ id: person.sessionId }]);
  for (const other of others) expect(await isSignedIn(other)).toBe(false);
});

test('a person cannot end the session of another member as the own one', async () => {
  const [ann, bob] = [await signedIn('owner'), await signedIn('member')];
  for (const id of [bob.sessionId, 'mss_1', 'x\0']) expect(await sessions.endOwn(ann.member, id)).toBe(false);
  expect(await isSignedIn(bob.browser)).toBe(true);
});

test('an Admin signs a member out everywhere', async () => {
  const [admin, person] = [await signedIn('admin'), await signedIn('member')];
  const other = await elsewhere(person);
  await admin.browser.open('/dashboard/members');
  await admin.browser.submit(`${person.member.id}/sign-out`);
  expect(admin.browser.text).toContain('The member is signed out everywhere.');
  for (const client of [person.browser, other]) expect(await isSignedIn(client)).toBe(false);
});

test('the list leaves out sessions that ended', async () => {
  const { member, sessionId } = await signedIn('member');
  const old = new Date(Date.now() - 13 * 3_600_000);
  await service.db.updateTable('member_sessions').set({ last_used_at: old }).where('id', '=', sessionId).execute();
  expect(await sessions.list(member.id)).toEqual([]);
});
