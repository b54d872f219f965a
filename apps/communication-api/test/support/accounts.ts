import { randomBytes } from 'node:crypto';
import type { Account, NewAccount } from '../../src/accounts/accounts.ts';
import type { Rooms } from '../../src/rooms.ts';

/** Stores a linked account of the mock provider, as the wizard does. */
export async function linkAccount(
  { accounts }: Pick<Rooms, 'accounts'>,
  applicationId: string,
  given: Partial<NewAccount> = {},
): Promise<Account> {
  const name = given.name ?? `${randomBytes(6).toString('hex')}@mock.test`;
  const account = await accounts.insert(applicationId, {
    provider: 'mock',
    providerUserId: name,
    name,
    scopeId: null,
    secret: { credentials: { drafts: true } },
    ...given,
  });
  if (account === undefined) throw new Error('The account is linked already.');
  return account;
}
