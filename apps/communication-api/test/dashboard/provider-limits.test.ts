import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { copyRow } from '../support/copies.ts';
import { peopleOf } from '../support/dashboard.ts';
import { editAtOnce, limitForm } from '../support/limit-form.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, db, url, application } = service;
const { signedIn } = peopleOf(service);
const EMAILS = 'POST /api/v1/emails';

/** An application with mock accounts that have sent some emails each, and an Admin. */
async function place(sent: Readonly<Record<string, number>> = {}) {
  const { id, token } = await application();
  const call = clientOf(url, token);
  const accounts: Record<string, string> = {};
  const send = async (name: string): Promise<number> => {
    const email = { account_id: accounts[name], to: [{ identifier: 'x@example.com' }], subject: 'Hi', body: 'Hi' };
    return (await call('POST', '/api/v1/emails', email)).status;
  };
  for (const [name, count] of Object.entries(sent)) {
    accounts[name] = (await linkAccount(rooms, id, { name: `${name}@mock.test` })).id;
    for (let i = 0; i < count; i++) expect(await send(name)).toBe(201);
  }
  const path = `/dashboard/applications/${id}/limits/mock`;
  const { browser, member } = await signedIn('admin');
  await browser.open(path);
  return { id, accounts, path, browser, member, call, send };
}

test('the tab has the limits of each provider that can be linked, and those that were adjusted', async () => {
  const { id, browser, call } = await place();
  await call('PUT', '/v2/limits', { provider: 'telegram', windows: ['7/1m'] });
  const shown = async (): Promise<readonly string[]> => {
    await browser.open(`/dashboard/applications/${id}/limits`);
    return [...browser.page.html.matchAll(/limits\/(\w+)"/g)].map(([, name = '']) => name);
  };
  expect(await shown()).toEqual(['imap', 'telegram', 'mock']);
  expect(browser.text).toContain('telegram Adjusted All methods 7 per 1m');
  await db.updateTable('applications').set({ environment: 'production' }).where('id', '=', id).execute();
  expect(await shown()).toEqual(['imap', 'telegram']);
  for (const name of ['nothing', 'constructor'])
    expect((await browser.request(`/dashboard/applications/${id}/limits/${name}`)).status).toBe(404);
});

describe('the preview of a limit', () => {
  test('names the accounts that would be rejected now, and those that are already', async () => {
    const { accounts, browser, call, path } = await place({ none: 0, one: 1, three: 3, own: 3 });
    await call('PUT', '/v2/limits', { account_id: accounts.own, windows: ['9/1m'] });
    await browser.open(path);
    await browser.submit('/preview', { ...limitForm(browser.page.html, 'all'), windows: '2/1m' });
    expect(browser.text).toContain('All methods of all mock accounts becomes 2/1m .');
    expect(browser.text).toContain('1 account would be rejected now, and is accepted at present: three@mock.test');
    expect(browser.text).toMatch(/three@mock\.test 3 of 2 per 1m, for \d+ s/);
    expect(browser.text).toContain('Looked at: all 4 accounts of the provider in this application.');
    expect(browser.text).toContain('1 of them has its own limit, which stays.');
    for (const name of ['none@', 'one@', 'own@']) expect(browser.text).not.toContain(name);
    await browser.submit('/limits');
    expect(browser.text).toContain('The limit is changed.');
    await browser.submit('/preview', { ...limitForm(browser.page.html, 'all'), windows: '1/1m' });
    expect(browser.text).toContain('1 account would be rejected now, and is accepted at present: one@mock.test');
    expect(browser.text).toContain('1 account would still be rejected, as at present: three@mock.test');
    await browser.open(path);
    await browser.submit('/preview', { ...limitForm(browser.page.html, 'all'), reset: 'yes' });
    expect(browser.text).toContain('60/1m, 5000/1d , as it is recommended.');
    expect(browser.text).toContain('No account that is accepted now would be rejected.');
    expect(browser.text).toContain('1 account would be accepted, and is rejected at present: three@mock.test');
  });

  test('looks at the 200 accounts that were used or linked last, and says so', async () => {
    const { id, accounts, browser, path } = await place({ first: 0, used: 3 });
    // The account that has sent was linked before all of the others.
    const linkedAgo = (ms: number): string => new Date(Date.now() - ms).toISOString();
    await db
      .updateTable('accounts')
      .set({ created_at: new Date(linkedAgo(7_200_000)) })
      .where('application_id', '=', id)
      .execute();
    const changes = sql`jsonb_build_object('name', 'n' || n, 'provider_user_id', 'n' || n, 'created_at', ${linkedAgo(3_600_000)}::text)`;
    await copyRow(db, 'accounts', accounts.first ?? '', 200, changes);
    await browser.open(path);
    await browser.submit('/preview', { ...limitForm(browser.page.html, 'all'), windows: '2/1m' });
    expect(browser.text).toContain('used@mock.test 3 of 2 per 1m');
    expect(browser.text).toContain('Looked at: the 200 accounts that were used or linked last.');
    expect(browser.text).toContain('The application owns more of them.');
  });
});

test('a limit is changed for all accounts, obeyed at once, noted, and reset', async () => {
  const { id, browser, member, send, path } = await place({ ann: 2, bob: 2 });
  await browser.submit('/preview', { ...limitForm(browser.page.html, EMAILS), windows: '1/1h 2/1m' });
  await browser.submit('/limits');
  expect(browser.text).toContain('Adjusted for the provider, in this application');
  expect(rooms.limits.find({ applicationId: id, provider: 'mock' }, EMAILS).windows).toEqual(['2/1m', '1/1h']);
  expect([await send('ann'), await send('bob')]).toEqual([429, 429]);
  await browser.open(path);
  await browser.submit('/preview', { ...limitForm(browser.page.html, EMAILS), reset: 'yes' });
  await browser.submit('/limits');
  expect(browser.text).not.toContain('Adjusted for the provider');
  expect(await send('ann')).toBe(201);
  const entries = db.selectFrom('audit_log').select(['action', 'subject']).where('actor_id', '=', member.id);
  expect(await entries.where('application_id', '=', id).orderBy('id').execute()).toEqual([
    { action: 'adjusted a limit', subject: `all mock accounts, ${EMAILS}: 2/1m, 1/1h` },
    { action: 'reset a limit', subject: `all mock accounts, ${EMAILS}` },
  ]);
});

test('of two people who edit one limit, one wins, and the other is told', async () => {
  const { id, path, browser: ann } = await place();
  const { browser: bob } = await signedIn('owner');
  await bob.open(path);
  await editAtOnce(ann, bob, () => rooms.limits.find({ applicationId: id, provider: 'mock' }, null));
});
