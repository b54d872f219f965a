import { isDeepStrictEqual } from 'node:util';
import type { MailAccount } from '../../src/providers/provider.ts';
import { Egress } from '../../src/security/egress.ts';

/** An account as a provider sees it, without a database. */
export interface TestMailAccount extends MailAccount {
  /** The stored credentials. */
  stored(): unknown;
  /** How often new credentials were stored. */
  renewals(): number;
}

export function mailAccount(address: string, credentials: unknown, given: Partial<MailAccount> = {}): TestMailAccount {
  let stored = credentials;
  let renewals = 0;
  return {
    id: 'acc_test',
    address,
    credentials,
    net: new Egress({ policy: 'off' }).through(undefined),
    renew: async (stale, refresh) => {
      if (!isDeepStrictEqual(stored, stale)) return stored;
      stored = await refresh(stored);
      renewals++;
      return stored;
    },
    stored: () => stored,
    renewals: () => renewals,
    ...given,
  };
}
