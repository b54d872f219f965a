import type { Account } from '../accounts/accounts.ts';
import type { AccountHealth } from '../accounts/health.ts';
import { type MailProvider, ProviderError } from '../providers/provider.ts';

/** The mail of a provider for one account. What its calls end in decides the status of the account. */
export function watchedMail(mail: MailProvider, account: Account, health: AccountHealth): MailProvider {
  const watch = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    try {
      const result = await call();
      await health.succeeded(account);
      return result;
    } catch (error) {
      if (error instanceof ProviderError) await health.failed(account, error.type);
      throw error;
    }
  };
  return {
    isFenced: (...values) => mail.isFenced(...values),
    draft: (...values) => watch(() => mail.draft(...values)),
    discard: (...values) => watch(() => mail.discard(...values)),
    sendDraft: (...values) => watch(() => mail.sendDraft(...values)),
    send: (...values) => watch(() => mail.send(...values)),
    find: (...values) => watch(() => mail.find(...values)),
    parent: (...values) => watch(() => mail.parent(...values)),
    // A mailbox that cannot be filed into may still send.
    ...(mail.fileCopy && { fileCopy: mail.fileCopy.bind(mail) }),
  };
}
