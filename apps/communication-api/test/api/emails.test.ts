import { expect, test } from 'vitest';
import { startService } from '../support/service.ts';

const service = await startService();
const { id: application, token } = await service.application();
const account = await service.rooms.accounts.insert(application, {
  provider: 'mock',
  providerUserId: 'me@mock.test',
  name: 'me@mock.test',
  scopeId: null,
  secret: { credentials: { drafts: true } },
});
const accountId = account?.id ?? '';

const send = (fields: object, headers: Record<string, string> = {}) =>
  fetch(`${service.url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ account_id: accountId, to: [{ identifier: 'ann@example.com' }], body: 'Hello', ...fields }),
  });

test('a retry with the key of a sent email gets the same answer, and another request under this key is refused', async () => {
  const first = await send({}, { 'idempotency-key': 'one' });
  expect(first.status).toBe(201);
  const text = await first.text();
  const again = await send({}, { 'idempotency-key': 'one' });
  expect(await again.text()).toBe(text);
  expect(again.headers.get('idempotency-replayed')).toBe('true');
  const other = await send({ subject: 'x' }, { 'idempotency-key': 'one' });
  expect(await other.json()).toMatchObject({ status: 409, type: 'errors/already_used' });
});

test('a form with a file is sent', async () => {
  const form = new FormData();
  form.set('account_id', accountId);
  form.set('to', JSON.stringify([{ identifier: 'ann@mock.test', display_name: 'Ann' }]));
  form.set('body', '<p>Hi</p>');
  form.append('attachments', new Blob(['hello'.repeat(100_000)], { type: 'text/plain' }), 'a.txt');
  const answer = await fetch(`${service.url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token },
    body: form,
  });
  expect(await answer.json()).toMatchObject({ object: 'EmailSent' });
});

test('a retry finds the email whose answer was lost', async () => {
  const to = [{ identifier: 'drop@mock.test' }];
  const lost = await send({ to }, { 'idempotency-key': 'lost' });
  expect(await lost.json()).toMatchObject({ status: 504, type: 'errors/request_timeout' });
  const again = await send({ to }, { 'idempotency-key': 'lost' });
  expect(again.status).toBe(201);
});
