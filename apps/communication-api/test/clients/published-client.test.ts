import { UnipileClient } from 'unipile-node-sdk';
import { expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { deliveredEmail, filesOf } from '../support/delivered.ts';
import { startService } from '../support/service.ts';

const service = await startService();
const { id: application, token } = await service.application();
const { id: accountId } = await linkAccount(service.rooms, application, { name: 'me@mock.test' });
// The client checks each answer by its own schema.
const client = new UnipileClient(service.url, token, {
  validateRequestPayload: true,
  validateRequestPayloadLevel: 'error',
});

test('unipile-node-sdk sends an email with files, unchanged', async () => {
  const sent = await client.email.send({
    account_id: accountId,
    to: [{ identifier: 'ann@mock.test', display_name: 'Ann Öz' }],
    cc: [{ identifier: 'bob@mock.test' }],
    subject: 'Hello',
    body: '<p>Hi</p>',
    attachments: [
      ['ä.txt', Buffer.from('hello')],
      ['b.bin', Buffer.from('bye')],
    ],
    custom_headers: [{ name: 'X-Ticket', value: '7' }],
    tracking_options: { opens: false, label: 'welcome' },
  });
  expect(sent).toMatchObject({ object: 'EmailSent', tracking_id: expect.stringMatching(/^eml_/) });
  const email = await deliveredEmail(service.db, sent.tracking_id);
  expect(email).toMatchObject({ subject: 'Hello', html: expect.stringContaining('<p>Hi</p>') });
  expect(email.headers.get('x-ticket')).toBe('7');
  expect(filesOf(email)).toMatchObject([
    { filename: 'ä.txt', text: 'hello' },
    { filename: 'b.bin', text: 'bye' },
  ]);
});

test('unipile-node-sdk shows an error of the service', async () => {
  const sending = client.email.send({ account_id: accountId, to: [{ identifier: 'nobody' }], body: 'x' });
  await expect(sending).rejects.toMatchObject({
    body: { status: 422, type: 'errors/invalid_recipient', detail: expect.stringContaining('to[0].identifier') },
  });
});

test('unipile-node-sdk asks for accounts of version 1, which there are not: the answer says where to look', async () => {
  // It can only ask for /api/<version>/accounts, and expects other names of fields than the specification has.
  await expect(client.account.getAll()).rejects.toMatchObject({
    body: { status: 404, type: 'errors/resource_not_found', detail: expect.stringContaining('/docs') },
  });
});
