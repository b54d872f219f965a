import type { Account } from '../accounts/accounts.ts';
import type { AccountHealth } from '../accounts/health.ts';
import { type MailProvider, ProviderError, type SentIds } from '../providers/provider.ts';
import { storableIds } from './provider-answers.ts';

/** The mail of a provider for one account. The results of its calls decide the status of the account. */
export function watchedMail(mail: MailProvider, account: Account, health: AccountHealth): MailProvider {
  const noteErrors = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    try {
      return await call();
    } catch (error) {
      if (error instanceof ProviderError) await health.failed(account, error.type);
      throw error;
    }
  };
  const watch = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    const result = await noteErrors(call);
    await health.succeeded(account);
    return result;
  };
  return {
    isFenced: (...values) => mail.isFenced(...values),
    // The send comes next, and decides: otherwise an account whose sends fail would recover with each draft.
    draft: (...values) => noteErrors(() => mail.draft(...values)),
    // This only tidies up after a failure.
    discard: (...values) => mail.discard(...values),
    sendDraft: async (...values) => foundIds(await watch(() => mail.sendDraft(...values))),
    send: async (...values) => storableIds(await watch(() => mail.send(...values))),
    find: async (...values) => foundIds(await watch(() => mail.find(...values))),
    parent: (...values) => watch(() => mail.parent(...values)),
    // A mailbox that cannot be filed into may still send.
    ...(mail.fileCopy && { fileCopy: mail.fileCopy.bind(mail) }),
  };
}

const foundIds = (ids: SentIds | undefined): SentIds | undefined => (ids === undefined ? undefined : storableIds(ids));
