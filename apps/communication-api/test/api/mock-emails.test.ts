import { expect, test } from 'vitest';
import { MAX_RAW } from '../../src/providers/mock/mailbox.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';

const { url, application, rooms } = await startService();

/** An application with a mock account. */
async function place(environment: 'development' | 'production' = 'development') {
  const app = await application(environment);
  const account = await linkAccount(rooms, app.id, { name: 'shop@mock.test' });
  const call = clientOf(url, app.token);
  const send = async (fields: object): Promise<string> => {
    const to = [{ identifier: 'ann@example.com', display_name: 'Änn' }];
    const answer = await call('POST', '/api/v1/emails', { account_id: account.id, to, body: 'Hi', ...fields });
    expect(answer.text).toContain('EmailSent');
    return answer.body.tracking_id;
  };
  return { ...app, account: account.id, path: `/v2/accounts/${account.id}/mock-emails`, call, send };
}

test('an email of the mock can be read, as its recipients get it', async () => {
  const { account, path, call, send } = await place();
  const tracking_id = await send({
    subject: 'Grüße',
    body: '<p>Hé <b>you</b></p>',
    bcc: [{ identifier: 'boss@example.com' }],
    custom_headers: [{ name: 'X-Ticket', value: '7' }],
    attachments: [{ filename: 'ä.txt', content_type: 'text/plain', content: 'aGVsbG8=' }],
  });
  const { body: list } = await call('GET', path);
  expect(list).toMatchObject({ object: 'MockEmailList', has_more: false, data: [{ object: 'MockEmailEntry' }] });
  const [{ object: _, ...entry }] = list.data;
  expect(entry).toMatchObject({
    account_id: account,
    subject: 'Grüße',
    from: 'shop@mock.test',
    recipients: ['ann@example.com', 'boss@example.com'],
  });
  const { body: email } = await call('GET', `${path}/${entry.id}`);
  expect(email).toMatchObject({
    ...{ object: 'MockEmail', ...entry, tracking_id, is_complete: true },
    text: expect.stringContaining('Hé you'),
    html: expect.stringContaining('<p>Hé <b>you</b></p>'),
    attachments: [{ filename: 'ä.txt', content_type: 'text/plain', size: 5 }],
  });
  expect(email.headers).toContainEqual({ name: 'X-Ticket', value: '7' });
  expect(email.headers.map(({ name }: { name: string }) => name.toLowerCase())).not.toContain('bcc');
});

test('the newest emails come first, page by page', async () => {
  const { path, call, send } = await place();
  for (const subject of ['one', 'two', 'three']) await send({ subject });
  const subjectsOf = (body: { data: { subject: string }[] }) => body.data.map(({ subject }) => subject);
  const { body: first } = await call('GET', `${path}?limit=2`);
  expect([subjectsOf(first), first.has_more]).toEqual([['three', 'two'], true]);
  const { body: second } = await call('GET', `${path}?limit=2&cursor=${first.next_cursor}`);
  expect([subjectsOf(second), second.has_more, second.next_cursor]).toEqual([['one'], false, null]);
  expect(subjectsOf((await call('GET', `${path}?limit=1&offset=1`)).body)).toEqual(['two']);
  const cursor = Buffer.from('acc_01kaj6q2m0e7r8s9t0v1w2x3y4').toString('base64url');
  expect(await call('GET', `${path}?cursor=${cursor}`)).toMatchObject({ status: 422 });
});

test('of a long email, the beginning is there, and the answer says so', async () => {
  const { path, call, send } = await place();
  await send({ subject: 'Long', body: `<p>begin</p>${'<p>0123456789</p>'.repeat(MAX_RAW / 10)}` });
  const { body: list } = await call('GET', path);
  const { body: email } = await call('GET', `${path}/${list.data[0].id}`);
  expect(email).toMatchObject({ subject: 'Long', is_complete: false, text: expect.stringContaining('begin') });
  expect(email.size).toBeGreaterThan(MAX_RAW);
});

test('only the application and the scope of the account can read it', async () => {
  const { path, call, send, key, id } = await place();
  await send({});
  const email = `${path}/${(await call('GET', path)).body.data[0].id}`;
  const other = await place();
  await other.send({});
  const scope = (await rooms.scopes.create(id, { name: 's', reference: null })).id;
  const scoped = clientOf(url, await key('scoped', scope));
  for (const each of [path, email]) {
    expect(await other.call('GET', each)).toMatchObject({ status: 404 });
    expect(await scoped('GET', each)).toMatchObject({ status: 403 });
    expect(await clientOf(url, await key('account'))('GET', each)).toMatchObject({ status: 200 });
  }
  // An id of another mailbox names nothing in this one.
  const foreign = (await other.call('GET', other.path)).body.data[0].id;
  for (const each of [foreign, 'mock-0', 'mock-999999999', 'mock-9999999999', 'x', '%00'])
    expect(await call('GET', `${path}/${each}`)).toMatchObject({
      status: 404,
      body: { type: 'errors/resource_not_found' },
    });
});

test('it does not exist in production, nor for other providers', async () => {
  const { path, call } = await place('production');
  for (const each of [path, `${path}/mock-1`])
    expect(await call('GET', each)).toMatchObject({
      status: 404,
      body: { detail: 'This operation exists in applications for development only.' },
    });
  const development = await place();
  const imap = await linkAccount(rooms, development.id, { provider: 'imap', name: 'ann@example.com' });
  expect(await development.call('GET', `/v2/accounts/${imap.id}/mock-emails`)).toMatchObject({
    status: 404,
    body: { detail: 'Only an account of the mock provider has such a mailbox.' },
  });
});
