import type { Account, Accounts } from '../../accounts/accounts.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';

/**
 * The account that a request names, if its caller may use it. An account of another application does not exist for the
 * caller.
 * @throws ServiceError 404, or 403 if the account is outside the scope of the caller's key
 */
export async function accessibleAccount(
  accounts: Accounts,
  caller: Caller,
  id: string,
  read: 'find' | 'findRecent' = 'find',
): Promise<Account> {
  const account = await accounts[read](caller.applicationId, id);
  if (account === undefined) throw unknownAccount();
  if (caller.role === 'scoped' && account.scope_id !== caller.scopeId)
    throw new ServiceError(
      403,
      'errors/resource_access_restricted',
      'The account is outside the scope of your API key.',
    );
  return account;
}

export const unknownAccount = (): ServiceError =>
  new ServiceError(404, 'errors/invalid_resource_identifier', 'No account of your application has this account_id.');
