import { expect, test } from 'vitest';
import { type MailProvider, type Provider, ProviderError } from '../../src/providers/provider.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';

/** What the provider does when its time is over, and whether it read the email before that. */
let atDeadline: 'knows' | 'aborts' | 'ignores' = 'ignores';
let isRead = true;
const never = (): Promise<never> => Promise.reject(new Error('There are no drafts.'));
const mail: MailProvider = {
  isFenced: () => false,
  draft: never,
  discard: never,
  sendDraft: never,
  find: async () => undefined,
  parent: async () => undefined,
  send: async (email, _, signal) => {
    if (isRead) await email.open().toArray();
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        if (atDeadline === 'knows') reject(new ProviderError('no', 504, 'errors/request_timeout', 'It was not sent.'));
        if (atDeadline === 'aborts') reject(signal.reason);
      });
    });
  },
};
const slow: Provider = { name: 'linkedin', title: 'Slow', supports: new Set(['emails']), mail };

const service = await startService({ SEND_TIMEOUT_MS: '50' }, { providers: [slow] });
const application = await service.application();
const client = clientOf(service.url, application.token);

test.each([
  ['knows', true, undefined],
  ['aborts', true, 'dispatched'],
  ['ignores', true, 'dispatched'],
  // No recipient gets an email that the provider did not read to its end.
  ['ignores', false, undefined],
] as const)(
  'a provider that %s at its deadline, and read the email: %s: the row is %s',
  async (behaviour, read, state) => {
    atDeadline = behaviour;
    isRead = read;
    const { id } = await linkAccount(service.rooms, application.id, { provider: 'linkedin' });
    const email = { account_id: id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
    const { status, body } = await client('POST', '/api/v1/emails', email, {
      'idempotency-key': id,
    });
    expect([status, body.type]).toEqual([504, 'errors/request_timeout']);
    const row = await service.db.selectFrom('sends').select('state').where('account_id', '=', id).executeTakeFirst();
    // An email that was certainly not sent has no row: a retry sends it.
    expect(row?.state).toBe(state);
  },
);
