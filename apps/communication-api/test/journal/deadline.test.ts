import { expect, test } from 'vitest';
import { type MailProvider, type Provider, ProviderError } from '../../src/providers/provider.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';

/** What the provider does when its time is over. */
let atDeadline: 'knows' | 'aborts' | 'ignores' = 'ignores';
const never = (): Promise<never> => Promise.reject(new Error('There are no drafts.'));
const mail: MailProvider = {
  isFenced: () => false,
  draft: never,
  discard: never,
  sendDraft: never,
  find: async () => undefined,
  parent: async () => undefined,
  send: (_, __, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        if (atDeadline === 'knows') reject(new ProviderError('no', 504, 'errors/request_timeout', 'It was not sent.'));
        if (atDeadline === 'aborts') reject(signal.reason);
      });
    }),
};
const slow: Provider = { name: 'linkedin', title: 'Slow', supports: new Set(['emails']), mail };

const service = await startService({ SEND_TIMEOUT_MS: '50' }, { providers: [slow] });
const application = await service.application();
const client = clientOf(service.url, application.token);

test.each([
  ['knows', 'prepared'],
  ['aborts', 'dispatched'],
  ['ignores', 'dispatched'],
] as const)('a provider that %s at its deadline: the row is %s', async (behaviour, state) => {
  atDeadline = behaviour;
  const { id } = await linkAccount(service.rooms, application.id, { provider: 'linkedin' });
  const email = { account_id: id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
  const { status, body } = await client('POST', '/api/v1/emails', email, { 'idempotency-key': behaviour });
  expect([status, body.type]).toEqual([504, 'errors/request_timeout']);
  const row = await service.db.selectFrom('sends').select('state').where('account_id', '=', id).executeTakeFirst();
  expect(row).toEqual({ state });
});
