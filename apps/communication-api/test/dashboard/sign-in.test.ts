import { describe, expect, test } from 'vitest';
import { hashPassword } from '../../src/security/passwords.ts';
import { peopleOf } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let skew = 0;
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { clock: () => Date.now() + skew });
const { rooms } = service;
const { invitations, members } = rooms.people;
const { browser, newMember, signedIn } = peopleOf(service);
const person = (email: string) => ({ name: 'Ann', email, password: secret() });
const set = async (): Promise<string> => `/dashboard/join/${await invitations.createSetUpLink()}`;

describe('the first owner', () => {
  test('without one, the page for signing in says how to begin', async () => {
    const client = browser();
    await client.open('/dashboard');
    expect(client.path).toBe('/dashboard/sign-in');
    expect(client.text).toContain('There is no login yet.');
  });

  test('a set-up link ends after an hour', async () => {
    const path = await set();
    const client = browser();
    await client.open(path);
    expect(client.page.status).toBe(200);
    skew = HOUR;
    await client.open(path);
    expect(client.page.status).toBe(410);
    skew = 0;
  });

  test('faults are named, and the link stays open', async () => {
    const client = browser();
    await client.open(await set());
    await client.submit('', { name: ' ', email: 'ann', password: 'short' });
    expect(client.page.status).toBe(422);
    expect(client.text).toContain('Enter your name.');
    expect(client.text).toContain('Enter an email address');
    expect(client.text).toContain('Enter at least 12 characters.');
    expect(client.page.html).toContain('value="ann"');
  });

  test('a set-up link makes one Owner, once; every other set-up link ends', async () => {
    const [path, other] = [await set(), await set()];
    const [ann, bob] = [browser(), browser()];
    await ann.open(path);
    await bob.open(other);
    await ann.submit('', person('Ann@Example.com'));
    expect(ann.path).toBe('/dashboard/applications');
    expect(ann.text).toContain('Ann Owner');
    expect(await bob.submit('', person('bob@example.com'))).toBe(undefined);
    expect(bob.page.status).toBe(410);
    expect(await invitations.createSetUpLink()).toBe(undefined);
    const all = await members.list('org_00000000000000000000000000');
    expect(all.map(({ email, role }) => [email, role])).toEqual([['ann@example.com', 'owner']]);
    for (const each of [path, other]) {
      const late = browser();
      await late.open(each);
      expect(late.page.status).toBe(410);
    }
  });

  test('of two browsers that send one link at the same time, one becomes a member', async () => {
    const path = `/dashboard/join/${await invitations.createOwnerLink()}`;
    const clients = [browser(), browser()];
    for (const client of clients) await client.open(path);
    await Promise.all(clients.map((client, index) => client.submit('', person(`twin${index}@example.com`))));
    expect(clients.map(({ page }) => page.status).sort()).toEqual([200, 410]);
  });

  test('a link of the operator replaces a password that is lost, and ends the sessions of the login', async () => {
    const { member, browser: lost } = await signedIn('admin');
    const client = browser();
    await client.open(`/dashboard/join/${await invitations.createOwnerLink()}`);
    await client.submit('', person(member.email));
    expect(client.text).toContain('Ann Owner');
    await lost.open('/dashboard');
    expect(lost.path).toBe('/dashboard/sign-in');
  });
});

describe('signing in', () => {
  test('leads to the page that was asked for, and to no other site', async () => {
    const password = secret();
    const { email } = await newMember('admin', password);
    const client = browser();
    await client.open('/dashboard/members');
    expect(client.path).toBe('/dashboard/sign-in');
    await client.submit('/sign-in', { email: ` ${email.toUpperCase()}`, password });
    expect(client.path).toBe('/dashboard/members');
    for (const next of ['//evil.example', 'https://evil.example', '/dashboard/../docs', '/docs', '/dashboard//x']) {
      const other = browser();
      await other.open(`/dashboard/sign-in?next=${encodeURIComponent(next)}`);
      await other.submit('/sign-in', { email, password });
      expect([next, other.path]).toEqual([next, '/dashboard/applications']);
    }
  });

  test('says the same for a wrong password and an unknown address', async () => {
    const { email } = await newMember('member');
    const texts: string[] = [];
    for (const address of [email, 'nobody@example.com']) {
      const client = browser();
      await client.open('/dashboard/sign-in');
      await client.submit('/sign-in', { email: address, password: secret() });
      expect(client.page.status).toBe(422);
      texts.push(client.text);
    }
    expect(texts[0]).toContain('The email address or the password is wrong.');
    expect(texts[0]).toBe(texts[1]);
  });

  test('names a text that is no address, also one that the database cannot store', async () => {
    const client = browser();
    for (const email of ['ann', 'ann\0@example.com', '']) {
      await client.open('/dashboard/sign-in');
      await client.submit('/sign-in', { email, password: 'wrong' });
      expect([client.page.status, client.text]).toEqual([422, expect.stringContaining('Enter an email address')]);
    }
  });

  test('the cookie is not for scripts, and another one after each sign-in; signing out ends it', async () => {
    const password = secret();
    const { email } = await newMember('member', password);
    const client = browser();
    const cookies: string[] = [];
    for (let i = 0; i < 2; i++) {
      await client.open('/dashboard/sign-in');
      const { path, body } = client.form('/sign-in', { email, password });
      const { headers } = await client.request(path, { method: 'POST', body });
      expect(headers.getSetCookie()[0]).toMatch(
        /^dashboard=[\w-]{43}; Max-Age=604800; Path=\/; HttpOnly; SameSite=Lax$/,
      );
      cookies.push(client.cookies.get('dashboard') ?? '');
      await client.open('/dashboard');
      await client.submit('/sign-out');
      expect(client.path).toBe('/dashboard/sign-in');
    }
    expect(new Set(cookies).size).toBe(2);
    for (const cookie of cookies) {
      client.cookies.set('dashboard', cookie);
      await client.open('/dashboard');
      expect(client.path).toBe('/dashboard/sign-in');
    }
  });

  test('a session ends 12 hours after its last use, and 7 days after its beginning', async () => {
    const { browser: client } = await signedIn('member');
    const isIn = async (): Promise<boolean> => {
      await client.open('/dashboard');
      return client.path === '/dashboard/applications';
    };
    for (let hours = 0; hours < 168; hours += 11) {
      skew = hours * HOUR;
      expect([hours, await isIn()]).toEqual([hours, true]);
    }
    skew = 168 * HOUR;
    expect(await isIn()).toBe(false);
    skew = 0;
    const { browser: idle } = await signedIn('member');
    skew = 12 * HOUR;
    await idle.open('/dashboard');
    expect(idle.path).toBe('/dashboard/sign-in');
    skew = 169 * HOUR + 12 * HOUR;
    expect(await rooms.people.sessions.deleteOld(500)).toBeGreaterThan(0);
    skew = 0;
  });

  test('too many attempts for one login are refused from every address; the right password forgives', async () => {
    const password = secret();
    const { email } = await newMember('member', password);
    const attempt = async (tried: string): Promise<number> => {
      const client = browser();
      await client.open('/dashboard/sign-in');
      const { path, body } = client.form('/sign-in', { email, password: tried });
      return (await client.request(path, { method: 'POST', body })).status;
    };
    for (let i = 0; i < 9; i++) expect(await attempt('wrong')).toBe(422);
    expect(await attempt(password)).toBe(303);
    for (let i = 0; i < 10; i++) expect(await attempt('wrong')).toBe(422);
    expect(await attempt(password)).toBe(429);
  });

  test('too many forms of one address are refused, and the page says how long', async () => {
    // An unknown login takes as long as a real one, so these are known, and none is tried too often.
    const logins = await Promise.all([newMember('member'), newMember('member'), newMember('member')]);
    const client = browser();
    await client.open('/dashboard/sign-in');
    for (let i = 0; i < 20; i++)
      await client.submit('/sign-in', { email: logins[i % 3]?.email ?? '', password: 'wrong' });
    const { path, body } = client.form('/sign-in');
    const seen = await client.request(path, { method: 'POST', body });
    expect(seen.status).toBe(429);
    expect(Number(seen.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(seen.html).toMatch(/Wait \d+ seconds/);
  });

  test('a form of another site, or without a token of this browser, does nothing', async () => {
    const password = secret();
    const { email } = await newMember('member', password);
    const client = browser();
    await client.open('/dashboard/sign-in');
    const { path, body } = client.form('/sign-in', { email, password });
    const send = (headers: Record<string, string>, sent: URLSearchParams = body) =>
      client.request(path, { method: 'POST', body: sent, headers });
    expect((await send({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await send({ origin: 'https://evil.example' })).status).toBe(403);
    expect((await send({}, new URLSearchParams({ email, password }))).status).toBe(403);
    const stranger = browser();
    expect((await stranger.request(path, { method: 'POST', body })).status).toBe(403);
    expect((await send({ 'sec-fetch-site': 'same-origin' })).status).toBe(303);
  });

  test('a cookie that a browser makes up gives no token of a form of a session', async () => {
    const { browser: admin, sessionId } = await signedIn('admin');
    const client = browser();
    client.cookies.set('dashboard-form', `${sessionId} /dashboard/invitations`);
    await client.open('/dashboard/sign-in');
    expect(client.cookies.get('dashboard-form')).toMatch(/^[\w-]{24}$/);
    const { body } = client.form('/sign-in', { _id: '/dashboard/sign-in', label: 'x', role: 'admin' });
    expect((await admin.request('/dashboard/invitations', { method: 'POST', body })).status).toBe(403);
  });

  test('the dashboard is on its own host only', async () => {
    const answer = await service.app.inject({ url: '/dashboard/sign-in', headers: { host: 'evil.example' } });
    expect(answer.statusCode).toBe(421);
  });
});

describe('the own login', () => {
  test('a new password needs the current one, and signs out other browsers', async () => {
    const { member, password, browser: client } = await signedIn('member');
    const elsewhere = browser();
    elsewhere.cookies.set('dashboard', await rooms.people.sessions.create(member));
    const next = secret();
    await client.open('/dashboard/login');
    await client.submit('/login', { password: 'wrong', new_password: next });
    expect(client.text).toContain('The current password is wrong.');
    await client.submit('/login', { password, new_password: 'short' });
    expect(client.text).toContain('Enter at least 12 characters.');
    await client.submit('/login', { password, new_password: next });
    expect(client.text).toContain('The password is changed.');
    await elsewhere.open('/dashboard');
    expect(elsewhere.path).toBe('/dashboard/sign-in');
    expect(await members.authenticate(member.email, password)).toBe(undefined);
    expect(await members.authenticate(member.email, next)).toMatchObject({ member: { id: member.id } });
  });

  test('a password that is replaced while it is compared opens no session, and replaces no other', async () => {
    const password = secret();
    const member = await newMember('admin', password);
    const { sessions } = rooms.people;
    const ofMember = service.db.updateTable('members').where('id', '=', member.id);
    const { password_hash: compared } = await ofMember
      // A hash that takes time, as in production.
      .set({ password_hash: await hashPassword(password) })
      .returning('password_hash')
      .executeTakeFirstOrThrow();
    await sessions.create(member, { passwordHash: compared });
    const ofOperatorLink = await hashPassword(secret());
    // PGlite reads the old hash first. Two connections of PostgreSQL may do so in either order; the answer is the same.
    const change = members.changePassword(member, password, secret(), '');
    await ofMember.set({ password_hash: ofOperatorLink }).execute();
    expect(await change).toBe(false);
    await expect(sessions.create(member, { passwordHash: compared })).rejects.toMatchObject({ status: 403 });
    await service.db.deleteFrom('members').where('id', '=', member.id).execute();
    await expect(sessions.create(member)).rejects.toMatchObject({ status: 403 });
  });

  test('a person who has signed in does not use a link by mistake', async () => {
    const { browser: client } = await signedIn('admin');
    const token = await invitations.createOwnerLink();
    await client.open(`/dashboard/join/${token}`);
    expect(client.text).toContain('You are signed in already');
    await client.submit('/sign-out');
    await client.open(`/dashboard/join/${token}`);
    expect(client.text).toContain('Set up a login');
  });
});
