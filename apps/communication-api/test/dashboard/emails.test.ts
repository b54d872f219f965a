import { randomUUID } from 'node:crypto';
import type { KeptResult, Reconciled } from 'headgate/idempotency';
import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { copyRow } from '../support/copies.ts';
import { peopleOf } from '../support/dashboard.ts';
import { unknownEmail } from '../support/emails.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { rooms, db, url, application } = service;
const { signedIn } = peopleOf(service);

/** An application with an account, and an Admin. */
async function place(credentials = { drafts: true }) {
  const { id, token } = await application();
  const account = await linkAccount(rooms, id, { secret: { credentials } });
  const { browser, member } = await signedIn('admin');
  const call = clientOf(url, token);
  const send = (to: string, headers: Record<string, string> = {}) =>
    call(
      'POST',
      '/api/v1/emails',
      { account_id: account.id, to: [{ identifier: to }], subject: 'Secret subject', body: 'Hi' },
      headers,
    );
  return { id, account, list: `/dashboard/applications/${id}/emails`, browser, member, call, send };
}

/** The only email of an application. */
const rowIn = (id: string) =>
  db.selectFrom('sends').selectAll().where('application_id', '=', id).executeTakeFirstOrThrow();
const rowOf = (id: string) => db.selectFrom('sends').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

const eventsOf = async (emailId: string): Promise<readonly string[]> =>
  (await db.selectFrom('events').selectAll().orderBy('id').execute())
    .filter(({ data }) => data.tracking_id === emailId)
    .map(({ type }) => type);

describe('the list of emails', () => {
  test('has the newest first, and is filtered by state and by account', async () => {
    const { id, account, list, browser, send } = await place();
    await browser.open(list);
    expect(browser.text).toContain('No email was sent in the last 30 days.');
    const { body: sent } = await send('ann@example.com');
    await send('error.422.recipient_rejected@mock.test');
    const other = await linkAccount(rooms, id, { name: 'other@mock.test' });
    const unknown = await unknownEmail(service, id, other.id);
    const shown = async (query = ''): Promise<readonly (string | undefined)[]> => {
      await browser.open(`${list}${query}`);
      return [...browser.page.html.matchAll(/<a class="title"[^>]*>([^<]*)</g)].map(([, text]) => text);
    };
    const all = await shown();
    expect(all).toEqual([unknown, expect.stringMatching(/^eml_/), sent.tracking_id]);
    expect(browser.text).toContain('1 email has an unknown outcome.');
    expect(browser.text).toContain('errors/recipient_rejected');
    expect(await shown('?state=unknown')).toEqual([unknown]);
    expect(browser.text).not.toContain('1 email has an unknown outcome.');
    expect(await shown('?state=failed')).toEqual([all[1]]);
    expect(await shown('?state=sent')).toEqual([sent.tracking_id]);
    expect(await shown('?state=sending')).toEqual([]);
    expect(browser.text).toContain('No email matches.');
    expect(await shown('?account=OTHER')).toEqual([unknown]);
    expect(await shown(`?account=${account.id}&state=sent`)).toEqual([sent.tracking_id]);
    expect(await shown('?account=nobody')).toEqual([]);
    // The emails of an account outlive it.
    await rooms.accounts.remove(id, account.id);
    expect(await shown(`?account=${account.id}&state=sent`)).toEqual([sent.tracking_id]);
    expect(browser.text).toContain(`${account.id}, which is removed`);
  });

  test('has a next page, which keeps the filter', async () => {
    const { id, account, list, browser } = await place();
    await copyRow(db, 'sends', await unknownEmail(service, id, account.id), 50);
    await browser.open(`${list}?state=unknown&account=${account.id}`);
    const [, next = ''] = /href="(\?[^"]*)">Older emails/.exec(browser.page.html) ?? [];
    expect(next).toContain('state=unknown');
    expect(next).toContain(`account=${account.id}`);
    await browser.open(list + next.replaceAll('&amp;', '&'));
    expect(browser.page.html.match(/<a class="title"/g)).toHaveLength(1);
    await browser.open(list);
    expect(browser.text).toContain('51 emails have an unknown outcome.');
  });
});

describe('the page of an email', () => {
  test('shows the row of the journal, without the parts that the API does not show', async () => {
    const { list, browser, send, account } = await place();
    const { body } = await send('ann@example.com', { 'idempotency-key': 'visible-only-to-clients' });
    await browser.open(`${list}/${body.tracking_id}`);
    const { message_id, provider_id } = await rowOf(body.tracking_id);
    for (const text of ['sent', 'Sent as a draft Yes', provider_id ?? '?', account.name, 'Known'])
      expect(browser.text).toContain(text);
    // The journal knows when the provider was asked, not when it took the email.
    expect(browser.text).toContain('Handover to the provider began');
    expect(browser.page.html).toContain(message_id.replace('<', '&lt;'));
    for (const text of ['ann@example.com', 'Secret subject', 'visible-only-to-clients', '/resolve'])
      expect(browser.page.html).not.toContain(text);
  });

  test('shows why it failed', async () => {
    const { id, list, browser, send } = await place();
    await send('error.422.recipient_rejected@mock.test');
    const { id: email } = await rowIn(id);
    await browser.open(`${list}/${email}`);
    expect(browser.text).toContain('422 errors/recipient_rejected :');
  });

  test('does not exist for another application', async () => {
    const [own, other] = [await place(), await place()];
    const foreign = await unknownEmail(service, other.id, other.account.id);
    for (const email of [foreign, 'eml_1'])
      expect((await own.browser.request(`${own.list}/${email}`)).status).toBe(404);
  });
});

describe('an email with an unknown outcome', () => {
  test.each([
    ['sent', 'as sent', 'email.sent'],
    ['not_sent', 'as not sent', 'email.failed'],
  ] as const)('is resolved as %s by a person', async (outcome, words, event) => {
    // Not by drafts, so an email whose answer is lost is not sent a second time.
    const { id, account, list, browser, member, send, call } = await place({ drafts: false });
    const key = { 'idempotency-key': randomUUID() };
    expect((await send('drop@mock.test', key)).status).toBe(504);
    // The mailbox does not show the email.
    await db.deleteFrom('mock_messages').where('account_id', '=', account.id).execute();
    expect((await send('drop@mock.test', key)).body.type).toBe('errors/conflict');
    const { id: email } = await rowIn(id);
    await browser.open(`${list}/${email}`);
    await browser.submit('/resolve');
    expect([browser.page.status, browser.text]).toEqual([422, expect.stringContaining('Choose one of these.')]);
    await browser.submit('/resolve', { outcome });
    expect(browser.text).toContain('The email is resolved.');
    const resolved = (await call('GET', `/v2/emails/${email}`)).body;
    expect(resolved.state).toBe(outcome === 'sent' ? 'sent' : 'failed');
    // Ids of one millisecond are in no order.
    expect((await eventsOf(email)).slice(-2).sort()).toEqual([event, 'email.outcome_resolved'].sort());
    const entry = db.selectFrom('audit_log').selectAll().where('subject_id', '=', email);
    expect(await entry.execute()).toMatchObject([
      {
        actor: member.name,
        action: 'resolved an email',
        subject: `${email}, ${words}`,
        application_id: id,
      },
    ]);
    // A retry gets what the person has found, and sends nothing.
    const retry = await send('drop@mock.test', key);
    if (outcome === 'sent')
      expect(retry).toMatchObject({ status: 201, body: { tracking_id: email, provider_id: null } });
    else expect(retry).toMatchObject({ status: 409, body: { type: 'errors/operation_canceled' } });
    const received = db.selectFrom('mock_messages').select('id').where('account_id', '=', account.id);
    expect(await received.execute()).toEqual([]);
  });

  test('is resolved by one of two people; the other one is told', async () => {
    const { id, account, list, browser: ann } = await place();
    const { browser: bob, member } = await signedIn('admin');
    const email = await unknownEmail(service, id, account.id);
    await Promise.all([ann.open(`${list}/${email}`), bob.open(`${list}/${email}`)]);
    await Promise.all([ann.submit('/resolve', { outcome: 'sent' }), bob.submit('/resolve', { outcome: 'not_sent' })]);
    const [winner, loser] = ann.page.status === 200 ? [ann, bob] : [bob, ann];
    expect(winner.text).toContain('The email is resolved.');
    expect([loser.page.status, loser.text]).toEqual([
      409,
      expect.stringContaining('Another person, or the service itself, found out the outcome of this email'),
    ]);
    expect(loser.page.html).not.toContain('/resolve"');
    expect((await rowOf(email)).state).toBe(winner === ann ? 'sent' : 'failed');
    expect((await eventsOf(email)).filter((type) => type === 'email.outcome_resolved')).toHaveLength(1);
    expect(await db.selectFrom('audit_log').select('id').where('subject_id', '=', email).execute()).toHaveLength(1);
    expect(member.role).toBe('admin');
  });

  test.each(['not_sent', 'sent'] as const)(
    'is not resolved as %s while a living process asks the provider; of the two, one wins',
    async (outcome) => {
      const { id, account, list, browser } = await place();
      const email = await unknownEmail(service, id, account.id);
      await browser.open(`${list}/${email}`);
      const claim = { scope: id, key: `\n${email}` };
      let answer: (found: Reconciled<KeptResult>) => void = () => undefined;
      const asking = rooms.idempotency.reconcileWith(claim, () => new Promise((resolve) => (answer = resolve)));
      await expect.poll(async () => (await rooms.idempotency.inspect(claim))?.leaseMs).toBeGreaterThan(0);
      await browser.submit('/resolve', { outcome });
      expect([browser.page.status, browser.text]).toEqual([
        409,
        expect.stringContaining('The service is asking the provider about this email at this moment.'),
      ]);
      expect((await rowOf(email)).state).toBe('unknown');
      // The provider did not say: the person's word counts, and what a late attempt says does not.
      answer('unknown');
      expect(await asking).toBe('unknown');
      await browser.submit('/resolve', { outcome });
      expect(browser.text).toContain('The email is resolved.');
      const ids = { providerId: 'late', immutableId: null, thread: null, rejected: [] };
      const late = {
        result: { status: '201', value: undefined },
        note: rooms.sends.notes.sent(await rowOf(email), ids),
      };
      expect(await rooms.idempotency.completeWith(claim, late.result, { note: late.note })).toBe('already_completed');
      expect(await rowOf(email)).toMatchObject({
        ...{ state: outcome === 'sent' ? 'sent' : 'failed', provider_id: null },
      });
    },
  );
});
