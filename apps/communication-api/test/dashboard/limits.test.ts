import { expect, test, vi } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { editAtOnce, limitForm } from '../support/limit-form.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, url, application } = service;
const { signedIn } = peopleOf(service);

const EMAIL = { to: [{ identifier: 'ann@example.com' }], subject: 'Hi', body: 'Hi' };

/** An application with one account, and an Admin who looks at its limits. */
async function place() {
  const { id, token } = await application();
  const account = await linkAccount(rooms, id);
  const path = `/dashboard/applications/${id}/accounts/${account.id}`;
  const { browser, member } = await signedIn('admin');
  await browser.open(path);
  const send = async (): Promise<number> =>
    (await clientOf(url, token)('POST', '/api/v1/emails', { account_id: account.id, ...EMAIL })).status;
  return { id, account, path, browser, member, send };
}

test('the windows of an account are shown as they are counted, and emptied', async () => {
  const { account, path, browser, send } = await place();
  await browser.open(`${path.replace(/\/acc_.*/, '')}`);
  expect(browser.text).toContain(account.name);
  expect([await send(), await send()]).toEqual([201, 201]);
  await browser.open(path);
  const windows = await rooms.limiter.peek({
    account: account.id,
    provider: `${account.application_id}/mock`,
    route: 'POST /api/v1/emails',
  });
  expect(windows.length).toBeGreaterThan(0);
  for (const { max } of windows) expect(browser.text).toContain(`2 of ${max} per`);
  expect(browser.page.html).toMatch(/<progress [^>]*value="2"/);
  expect(browser.text).toMatch(/ends in \d+ s/);
  expect(browser.text).toMatch(/ends in 24 h/);
  // A page that is followed is loaded again, so it has no form whose values would be lost.
  await browser.open(`${path}?live`);
  expect(browser.page.headers.get('refresh')).toBe('5');
  expect(browser.page.html).not.toContain('name="windows"');
  await browser.open(path);
  expect(browser.page.headers.get('refresh')).toBe(null);
  await browser.submit('/counters');
  expect(browser.text).toContain('The counters are empty.');
  expect(browser.text).toContain('not active');
});

test('counters that cannot be emptied with an entry of the audit log stay', async () => {
  const { path, browser, send } = await place();
  expect(await send()).toBe(201);
  await browser.open(path);
  const { path: action, body } = browser.form('/counters');
  vi.spyOn(rooms.people, 'audited').mockRejectedValueOnce(new Error('Connection terminated'));
  expect((await browser.request(action, { method: 'POST', body })).status).toBe(503);
  await browser.open(path);
  expect(browser.text).toMatch(/1 of \d+ per/);
});

test('a change is previewed, made, obeyed at once, and reset', async () => {
  const { path, browser, send } = await place();
  expect([await send(), await send()]).toEqual([201, 201]);
  await browser.open(path);
  const before = /per 1m/.test(browser.text);
  expect(before).toBe(true);
  await browser.submit('/preview', { ...limitForm(browser.page.html, 'POST /api/v1/emails'), windows: '2/1m' });
  expect(browser.text).toContain('POST /api/v1/emails of');
  expect(browser.text).toMatch(/would be rejected now, for the next \d+ s: 2 of 2 per 1m/);
  // A preview changes nothing.
  expect(await send()).toBe(201);
  await browser.submit('/limits');
  expect(browser.text).toContain('The limit is changed.');
  expect(browser.text).toContain('Adjusted for this account');
  expect(browser.text).toContain('Rejects now');
  expect(await send()).toBe(429);
  await browser.submit('/preview', { ...limitForm(browser.page.html, 'POST /api/v1/emails'), reset: 'yes' });
  expect(browser.text).toContain('as it is for the provider.');
  await browser.submit('/limits');
  expect(browser.text).not.toContain('Adjusted for this account');
  expect(await send()).toBe(201);
  await browser.open('/dashboard/audit');
  expect(browser.text).toContain('adjusted a limit');
  expect(browser.text).toContain('reset a limit');
});

test('of two people who edit one limit, one wins, and the other is told', async () => {
  const { path, browser: ann, account, id } = await place();
  const { browser: bob } = await signedIn('admin');
  await bob.open(path);
  const stored = () => rooms.limits.find({ applicationId: id, provider: 'mock', accountId: account.id }, null);
  const { loser, theirs } = await editAtOnce(ann, bob, stored);
  await loser.submit('/preview', limitForm(loser.page.html, 'all'));
  await loser.submit('/limits');
  expect(stored().windows).toEqual([theirs]);
});

test.each([
  ['', 'Enter one or two windows'],
  ['1/1m, 2/1h, 3/1d', 'Enter one or two windows'],
  ['10 per minute', 'windows'],
  ['5/1m, 6/1m', 'windows'],
])('the windows %j are a fault', async (windows, message) => {
  const { browser } = await place();
  await browser.submit('/preview', { ...limitForm(browser.page.html, 'all'), windows });
  expect([browser.page.status, browser.text]).toEqual([422, expect.stringContaining(message)]);
});

test('an account of another application, and one that does not exist, have no page', async () => {
  const [own, other] = [await place(), await place()];
  for (const account of [other.account.id, 'acc_1'])
    expect((await own.browser.request(`/dashboard/applications/${own.id}/accounts/${account}`)).status).toBe(404);
});
