import { describe, expect, test } from 'vitest';
import { Csrf } from '../../src/wizard/csrf.ts';
import { Authenticator, recoveryCodesIn, scannedSecret, setUpSecondFactor } from '../support/authenticator.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf, type TestMember } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import type { PlainBrowser } from '../wizard/plain-browser.ts';

const STEP = 30_000;
const PAGE = '/dashboard/login/second-factor';
const WRONG = 'This code is wrong, or it was used.';

// The steps of the codes must not pass by themselves while a test runs. Entries of one millisecond have no order.
let now = Math.ceil(Date.now() / STEP) * STEP + 1_000;
const clock = () => ++now;
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { clock });
const { rooms, db } = service;
const { secondFactors, sessions, organizations, audit, members, invitations } = rooms.people;
const { browser, signedIn } = peopleOf(service);

/** A member with a second factor. */
async function protectedMember(role: TestMember['member']['role'] = 'member') {
  const person = await signedIn(role);
  const factor = await setUpSecondFactor(person.browser, person.password, clock);
  now += STEP;
  return { ...person, ...factor };
}

/** A browser that is asked for the code of a person. */
async function askedForCode({ member, password }: TestMember, next?: string): Promise<PlainBrowser> {
  const client = browser();
  await client.open(next ?? '/dashboard');
  await client.submit('/sign-in', { email: member.email, password });
  expect(client.path).toBe('/dashboard/sign-in/code');
  return client;
}

const isSignedIn = async (client: PlainBrowser): Promise<boolean> => {
  await client.open('/dashboard');
  return client.path === '/dashboard/applications';
};
const lastDeeds = async ({ member }: TestMember, limit: number) =>
  (await audit.list(member.organization_id, { limit, offset: 0, before: undefined }))
    .slice(0, limit)
    .map(({ action }) => action);

describe('the set-up', () => {
  test('counts only after a first code and the password, and signs out other browsers', async () => {
    const person = await signedIn('member');
    const { browser: client, member, password } = person;
    const elsewhere = browser();
    elsewhere.cookies.set('dashboard', await sessions.create(member));
    await client.open(PAGE);
    const app = new Authenticator(client.page.html, clock);
    expect(scannedSecret(client.page.html)).toBe(app.typed);
    await client.submit('/second-factor', { new_code: app.code(2), password });
    expect([client.page.status, client.text]).toEqual([422, expect.stringContaining('This code is wrong.')]);
    // The secret stays, so that it need not be scanned again.
    expect(new Authenticator(client.page.html, clock).code()).toBe(app.code());
    await client.submit('/second-factor', { new_code: app.code(), password: 'wrong' });
    expect(client.text).toContain('The password is wrong.');
    expect(await secondFactors.find(member.id)).toBe(undefined);
    const { path, body } = client.form('/second-factor', { new_code: app.code(), password });
    const shown = await client.request(path, { method: 'POST', body });
    expect([shown.status, recoveryCodesIn(shown.html)]).toEqual([200, expect.objectContaining({ length: 10 })]);
    expect([await isSignedIn(client), await isSignedIn(elsewhere)]).toEqual([true, false]);
    expect(await lastDeeds(person, 1)).toEqual(['set up the second factor']);
    // A reload sends the form again.
    const again = await client.request(path, { method: 'POST', body });
    expect([again.status, again.html]).toEqual([409, expect.stringContaining('This was done already')]);
    // The code of the set-up does not sign in.
    const other = await askedForCode(person);
    await other.submit('/code', { code: app.code() });
    expect(other.text).toContain(WRONG);
  });

  test('an offer is for one member, and for half an hour', async () => {
    const [ann, bob] = [await signedIn('member'), await signedIn('member')];
    await bob.browser.open(PAGE);
    const app = new Authenticator(bob.browser.page.html, clock);
    const { body } = bob.browser.form('/second-factor');
    await ann.browser.open(PAGE);
    const fields = { new_code: app.code(), password: ann.password };
    await ann.browser.submit('/second-factor', { ...fields, offer: body.get('offer') ?? '' });
    expect(ann.browser.text).toContain('The secret expired.');
    now += 30 * 60_000;
    await bob.browser.submit('/second-factor', { new_code: app.code(), password: bob.password });
    expect(bob.browser.text).toContain('The secret expired.');
  });

  test('of two set-ups at the same time, one counts', async () => {
    const { browser: client, member, password, sessionId } = await signedIn('member');
    await client.open(PAGE);
    const [first, second] = [secondFactors.offer(member.id), secondFactors.offer(member.id)];
    const setUp = (offer: typeof first) =>
      secondFactors.setUp(member, offer, { step: 1, replaces: undefined, sessionId });
    const results = await Promise.allSettled([setUp(first), setUp(second)]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await members.authenticate(member.email, password)).toBeDefined();
  });
});

describe('the second step of a sign-in', () => {
  test('starts no session before the code, and leads to the page that was asked for', async () => {
    const person = await protectedMember('admin');
    const client = await askedForCode(person, '/dashboard/members');
    expect(client.cookies.has('dashboard')).toBe(false);
    const pending = client.cookies.get('dashboard-pending') ?? '';
    expect(await sessions.resolve(pending)).toBe(undefined);
    await client.submit('/code', { code: '000000' });
    expect([client.page.status, client.text]).toEqual([422, expect.stringContaining(WRONG)]);
    expect(await isSignedIn(client)).toBe(false);
    await client.open('/dashboard/sign-in/code');
    await client.submit('/code', { code: person.app.code() });
    expect(client.path).toBe('/dashboard/members');
    expect(client.cookies.get('dashboard-pending')).toBe('');
    await expect(sessions.create(person.member)).rejects.toMatchObject({ status: 403 });
  });

  test('accepts a code once, also of two requests at the same time, and none of an earlier step', async () => {
    const person = await protectedMember();
    const used = await Promise.all([1, 2, 3].map(() => secondFactors.use(person.member, person.app.code())));
    expect(used.filter((id) => id !== undefined)).toHaveLength(1);
    expect(await secondFactors.use(person.member, person.app.code(1))).toBeDefined();
    now += STEP;
    expect(await secondFactors.use(person.member, person.app.code(-1))).toBe(undefined);
    expect(await secondFactors.use(person.member, person.app.code())).toBe(undefined);
  });

  test('accepts each recovery code once, and notes it', async () => {
    const person = await protectedMember();
    const [code = ''] = person.codes;
    const client = await askedForCode(person);
    await client.submit('/code', { recovery_code: code.toUpperCase() });
    expect(client.path).toBe('/dashboard/applications');
    expect(await lastDeeds(person, 2)).toEqual(['signed in', 'used a recovery code']);
    const again = await askedForCode(person);
    await again.submit('/code', { recovery_code: code });
    expect(again.text).toContain(WRONG);
    await client.open(PAGE);
    expect(client.text).toContain('Recovery codes left 9');
  });

  test('belongs to the password, to ten minutes, and to this browser', async () => {
    const person = await protectedMember();
    const [late, stale, stranger] = [await askedForCode(person), await askedForCode(person), browser()];
    const { path, body } = stale.form('/code', { code: person.app.code() });
    // Another browser has neither the cookie of the form nor the pending sign-in.
    expect((await stranger.request(path, { method: 'POST', body })).status).toBe(403);
    await stranger.open('/dashboard/sign-in/code');
    expect(stranger.path).toBe('/dashboard/sign-in');
    const changed = await members.changePassword(person.member, person.password, secret(), person.sessionId);
    expect(changed).toBe(true);
    await stale.submit('/code', { code: person.app.code() });
    expect(stale.path).toBe('/dashboard/sign-in');
    now += 10 * 60_000;
    await late.submit('/code', { code: person.app.code() });
    expect(late.path).toBe('/dashboard/sign-in');
  });

  test('a pending sign-in that was made up, or made for another purpose, is none', async () => {
    const person = await protectedMember();
    const client = await askedForCode(person);
    for (const token of ['x', secondFactors.offer(person.member.id).token, person.cookie]) {
      client.cookies.set('dashboard-pending', token);
      await client.open('/dashboard/sign-in/code');
      expect(client.path).toBe('/dashboard/sign-in');
    }
  });

  test('too many codes of one member are refused; the right one forgives', async () => {
    const person = await protectedMember();
    const client = await askedForCode(person);
    for (let i = 0; i < 4; i++) await client.submit('/code', { code: '000000' });
    await client.submit('/code', { code: person.app.code() });
    expect(client.path).toBe('/dashboard/applications');
    const other = await askedForCode(person);
    for (let i = 0; i < 5; i++) await other.submit('/code', { recovery_code: 'wrong' });
    const { path, body } = other.form('/code', { code: person.app.code(1) });
    const refused = await other.request(path, { method: 'POST', body });
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
  });

  test('the link of the operator replaces the password, and not the second factor', async () => {
    const person = await protectedMember('owner');
    const client = browser();
    await client.open(`/dashboard/join/${await invitations.createOwnerLink()}`);
    await client.submit('', { name: 'Ann', email: person.member.email, password: secret() });
    expect(client.path).toBe('/dashboard/sign-in/code');
    await client.submit('/code', { code: person.app.code() });
    expect(client.path).toBe('/dashboard/applications');
  });
});

describe('a second factor that is set up', () => {
  test('is changed by the password and a code of the old device', async () => {
    const person = await protectedMember();
    const { browser: client, password, app, member } = person;
    await client.open(PAGE);
    const next = new Authenticator(client.page.html, clock);
    await client.submit('/second-factor', { new_code: next.code(), password, code: next.code() });
    expect(client.text).toContain(WRONG);
    await client.submit('/second-factor', { new_code: next.code(), password, code: app.code() });
    const codes = recoveryCodesIn(client.page.html);
    expect(codes).toHaveLength(10);
    expect(await lastDeeds(person, 1)).toEqual(['changed the second factor']);
    now += STEP;
    const use = async (code = '') => (await secondFactors.use(member, code)) !== undefined;
    expect([await use(app.code()), await use(person.codes[0])]).toEqual([false, false]);
    expect([await use(next.code()), await use(codes[0])]).toEqual([true, true]);
  });

  test('gets new recovery codes by the password and a code, and the old ones end', async () => {
    const person = await protectedMember();
    const { browser: client, password, app, member } = person;
    await client.open(PAGE);
    await client.submit('/recovery-codes', { password: 'wrong', code: app.code() });
    expect(client.text).toContain('The password is wrong.');
    await client.submit('/recovery-codes', { password, code: '' });
    expect(client.text).toContain(WRONG);
    await client.submit('/recovery-codes', { password, code: app.code() });
    const codes = recoveryCodesIn(client.page.html);
    expect(await secondFactors.use(member, person.codes[0] ?? '')).toBe(undefined);
    expect(await secondFactors.use(member, codes[0] ?? '')).toBeDefined();
    expect(await lastDeeds(person, 2)).toEqual(['used a recovery code', 'made new recovery codes']);
  });

  test('is turned off by the password and a code; then the password is enough', async () => {
    const person = await protectedMember();
    const { browser: client, password, app, member } = person;
    await client.open(PAGE);
    await client.submit('/off', { password, code: '000000' });
    expect(client.text).toContain(WRONG);
    await client.submit('/off', { password, code: app.code() });
    expect(client.text).toContain('The second factor is turned off.');
    expect(await lastDeeds(person, 1)).toEqual(['turned off the second factor']);
    const other = browser();
    await other.open('/dashboard');
    await other.submit('/sign-in', { email: member.email, password });
    expect(other.path).toBe('/dashboard/applications');
  });

  test('that another request changed meanwhile is neither turned off nor gets codes', async () => {
    const { member } = await protectedMember();
    await expect(secondFactors.turnOff(member, 'sfa_1')).rejects.toMatchObject({ status: 403 });
    await expect(secondFactors.renewRecoveryCodes(member, 'sfa_1')).rejects.toMatchObject({ status: 403 });
    expect(await secondFactors.find(member.id)).toMatchObject({ recoveryCodes: 10 });
  });

  test('is reset by an Admin, and by the operator; every session ends', async () => {
    const [person, admin] = [await protectedMember(), await signedIn('admin')];
    await admin.browser.open('/dashboard/members');
    await admin.browser.submit(`${person.member.id}/reset-second-factor`);
    expect(admin.browser.text).toContain('The second factor is reset');
    expect(await lastDeeds(admin, 1)).toEqual(['reset a second factor']);
    expect(await isSignedIn(person.browser)).toBe(false);
    expect(await sessions.create(person.member)).toMatch(/^[\w-]{43}$/);
    const owner = await protectedMember('owner');
    expect(await secondFactors.resetByOperator(owner.member.email)).toBe('reset');
    expect(await lastDeeds(owner, 1)).toEqual(['reset a second factor']);
    expect(await isSignedIn(owner.browser)).toBe(false);
    expect(await secondFactors.resetByOperator(owner.member.email)).toBe('no second factor');
    expect(await secondFactors.resetByOperator('nobody@example.com')).toBe('unknown login');
  });

  test('of the own login is not reset as another member', async () => {
    const { browser: client, member, sessionId } = await protectedMember('owner');
    await client.open('/dashboard/members');
    const path = `/dashboard/members/${member.id}/reset-second-factor`;
    expect(client.page.html).not.toContain(path);
    const body = new URLSearchParams({ _csrf: new Csrf(rooms.envelope).tokenOf(sessionId, path) });
    expect((await client.request(path, { method: 'POST', body })).status).toBe(403);
    expect(await secondFactors.find(member.id)).toBeDefined();
  });

  test('is sealed, and its recovery codes are hashed', async () => {
    const { member, codes } = await protectedMember();
    const row = await db
      .selectFrom('second_factors')
      .selectAll()
      .where('member_id', '=', member.id)
      .executeTakeFirstOrThrow();
    expect(rooms.envelope.open(`second_factors/${member.id}/secret`, row.secret)).toHaveLength(20);
    expect(row.recovery_hashes).toHaveLength(codes.length);
    for (const hash of row.recovery_hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('a second factor that the organization requires', () => {
  const require = async (admin: TestMember, work: string): Promise<void> => {
    await admin.browser.open('/dashboard/members');
    await admin.browser.submit('/organization/second-factor', { second_factor_for: work });
    expect(admin.browser.text).toContain('It is changed for whom a second factor is required.');
  };

  test('for everything: members without it do nothing else until it is set up', async () => {
    const [admin, person] = [await protectedMember('admin'), await signedIn('owner')];
    await require(admin, 'everything');
    const { browser: client, password, sessionId } = person;
    for (const path of [
      '/dashboard/applications',
      '/dashboard/members',
      '/dashboard/login',
      '/dashboard/login/sessions',
    ]) {
      await client.open(path);
      expect(client.path).toBe(PAGE);
    }
    expect(client.text).toContain('Your organization requires a second factor. Set it up to go on.');
    expect(client.page.html).not.toContain('href="/dashboard/members"');
    const path = '/dashboard/organization';
    const body = new URLSearchParams({ _csrf: new Csrf(rooms.envelope).tokenOf(sessionId, path), organization: 'O' });
    const form = await client.request(path, { method: 'POST', body });
    expect([form.status, form.location]).toEqual([303, PAGE]);
    expect((await organizations.find(person.member.organization_id))?.name).toBe('My organization');
    await setUpSecondFactor(client, password, clock);
    expect(await isSignedIn(client)).toBe(true);
    await client.open(PAGE);
    expect(client.page.html).not.toContain('second-factor/off');
    await require(admin, 'nobody');
  });

  test('for production: without it, a member may use applications for development', async () => {
    const [admin, person] = [await protectedMember('admin'), await signedIn('admin')];
    await require(admin, 'production');
    const [live, test] = [await service.application('production'), await service.application('development')];
    const led: string[] = [];
    for (const path of [
      `applications/${live.id}`,
      `applications/${test.id}`,
      'applications',
      'members',
      'login/sessions',
    ]) {
      await person.browser.open(`/dashboard/${path}`);
      led.push(person.browser.path.replace(/app_\w+/, 'ID'));
    }
    expect(led).toEqual([
      PAGE,
      ...['/applications/ID', '/applications', '/login/second-factor', '/login/sessions'].map(
        (path) => `/dashboard${path}`,
      ),
    ]);
    expect(await lastDeeds(admin, 1)).toEqual(['changed who needs a second factor']);
    // Keys of applications are no people.
    expect((await clientOf(service.url, live.token)('GET', '/v2/scopes')).status).toBe(200);
    await require(admin, 'nobody');
  });
});
