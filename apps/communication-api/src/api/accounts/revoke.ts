import type { Account } from '../../accounts/accounts.ts';
import type { Rooms } from '../../rooms.ts';

/** How long the client waits for the provider. */
const TIMEOUT_MS = 5_000;

/**
 * Withdraws the credentials of a removed account at its provider, within 5 seconds. The service already erased them, so
 * a failure is logged, and changes nothing for the client.
 * @param account as it was before it was removed
 */
export async function revoke({ providers, mailAccounts, log }: Rooms, account: Account): Promise<void> {
  const provider = providers.find(account.provider);
  if (provider?.revoke === undefined) return;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const tooLate = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    await Promise.race([provider.revoke(mailAccounts.of(account), signal), tooLate]);
  } catch (error) {
    // The message may contain the credentials that were sent to the provider.
    const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
    log.warn(
      { account: account.id, error: name, code },
      'the credentials of a removed account were not withdrawn at its provider',
    );
  }
}
