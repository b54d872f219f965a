import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Account } from '../../accounts/accounts.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';
import { readHead, readMessage } from '../../mail/read-message.ts';
import { type MockEntry, numberIn, providerIdOf } from '../../providers/mock/mailbox.ts';
import type { Rooms } from '../../rooms.ts';
import { accessibleAccount } from '../accounts/accessible-account.ts';
import { callerOf } from '../authenticate.ts';
import { listAnswer, listOf, pageOf, pageQuery } from '../page.ts';
import { problems } from '../problem.ts';

/** The form of the ids, which are those of the mock. */
const MOCK_ID = /^mock-\d{1,9}$/;

const entryFields = {
  id: z.string().describe('The id of the provider: `provider_id` of the send.'),
  account_id: z.string(),
  message_id: z.string(),
  recipients: z.array(z.string()).describe('Who receives the email, also by bcc.'),
  from: z.string().nullable(),
  subject: z.string().nullable(),
  size: z.number().int().describe('Bytes of the whole message.'),
  received_at: z.iso.datetime(),
};
const example = {
  id: 'mock-1',
  account_id: 'acc_01kaj6q2m0e7r8s9t0v1w2x3y4',
  message_id: '<5f0c1a52@mock.test>',
  recipients: ['ann@example.com'],
  from: 'Shop <me@mock.test>',
  subject: 'Hello',
  size: 1_204,
  received_at: '2026-11-21T12:00:00.120Z',
};

const entry = z
  .object({ object: z.literal('MockEmailEntry'), ...entryFields })
  .meta({ id: 'MockEmailEntry', examples: [{ object: 'MockEmailEntry', ...example }] });

const mockEmail = z
  .object({
    object: z.literal('MockEmail'),
    ...entryFields,
    tracking_id: z.string().nullable().describe('Of the send. Null: the journal has forgotten it.'),
    headers: z
      .array(z.object({ name: z.string(), value: z.string() }))
      .describe('In their order. Encoded words are not decoded.'),
    text: z.string().nullable(),
    html: z.string().nullable(),
    attachments: z.array(
      z.object({ filename: z.string().nullable(), content_type: z.string(), size: z.number().int() }),
    ),
    is_complete: z.boolean().describe('False: only the beginning of a long message is stored.'),
  })
  .meta({
    id: 'MockEmail',
    examples: [
      {
        object: 'MockEmail',
        ...example,
        tracking_id: 'eml_01kaj6r5t0e7r8s9t0v1w2x3y4',
        headers: [{ name: 'Subject', value: 'Hello' }],
        text: 'Hi',
        html: null,
        attachments: [{ filename: 'a.txt', content_type: 'text/plain', size: 5 }],
        is_complete: true,
      },
    ],
  });

const NOTE = 'Only for accounts of the mock provider, in applications for development.';

/** The mailboxes of the mock provider, for tests of an application. They do not exist in production. */
export const mockRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  const { mockMailbox, sends } = rooms;
  const tags = ['Mock mailbox'];
  app.addHook('onRequest', async (request) => {
    if (callerOf(request).environment !== 'development')
      throw new ServiceError(
        404,
        'errors/resource_not_found',
        'This operation exists in applications for development only.',
      );
  });

  app.get(
    '/v2/accounts/:account_id/mock-emails',
    {
      schema: {
        operationId: 'listMockEmails',
        summary: 'List the emails that the mock delivered',
        description: NOTE,
        tags,
        params: z.strictObject({ account_id: z.string() }),
        querystring: z.strictObject(pageQuery),
        response: { 200: listOf('MockEmailList', entry), ...problems(404) },
      },
    },
    async (request) => {
      const { id } = await mockAccount(rooms, callerOf(request), request.params.account_id);
      const page = pageOf(request.query, MOCK_ID);
      const shown = await Promise.all((await mockMailbox.list(id, page)).map((each) => shownEntry(id, each)));
      return listAnswer('MockEmailList', shown, page, (each) => each);
    },
  );

  app.get(
    '/v2/accounts/:account_id/mock-emails/:mock_email_id',
    {
      schema: {
        operationId: 'getMockEmail',
        summary: 'Get an email that the mock delivered',
        description: NOTE,
        tags,
        params: z.strictObject({ account_id: z.string(), mock_email_id: z.string() }),
        response: { 200: mockEmail, ...problems(404) },
      },
    },
    async (request) => {
      const account = await mockAccount(rooms, callerOf(request), request.params.account_id);
      const number = numberIn(request.params.mock_email_id);
      const message = number === undefined ? undefined : await mockMailbox.byId(account.id, number);
      if (message === undefined)
        throw new ServiceError(404, 'errors/resource_not_found', 'The account has no email with this id.');
      const { messageId, recipients, size, at, raw } = message;
      const id = providerIdOf(message);
      const { attachments, ...read } = await readMessage(raw, 'linked');
      return {
        object: 'MockEmail' as const,
        id,
        account_id: account.id,
        message_id: messageId,
        recipients: [...recipients],
        size,
        received_at: at.toISOString(),
        tracking_id: (await sends.records.byProviderId(account.application_id, account.id, id))?.id ?? null,
        ...{ ...read, headers: [...read.headers] },
        attachments: attachments.map(({ filename, contentType, size }) => ({
          filename,
          content_type: contentType,
          size,
        })),
        is_complete: raw.length === size,
      };
    },
  );
};

/** @throws ServiceError 404 or 403 */
async function mockAccount({ accounts }: Rooms, caller: Caller, id: string): Promise<Account> {
  const account = await accessibleAccount(accounts, caller, id);
  if (account.provider !== 'mock')
    throw new ServiceError(
      404,
      'errors/resource_not_found',
      'Only an account of the mock provider has such a mailbox.',
    );
  return account;
}

async function shownEntry(accountId: string, { id, messageId, recipients, size, at, start }: MockEntry) {
  const { from, subject } = await readHead(start);
  return {
    object: 'MockEmailEntry' as const,
    id,
    account_id: accountId,
    message_id: messageId,
    recipients: [...recipients],
    from,
    subject,
    size,
    received_at: at.toISOString(),
  };
}
