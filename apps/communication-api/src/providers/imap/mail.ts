import { isMessageId } from '../../domain/message-id.ts';
import type { ComposedMail } from '../../mail/mail.ts';
import {
  type CopyResult,
  type MailAccount,
  type MailProvider,
  type Parent,
  ProviderError,
  type SendTrace,
  type SentCopy,
  type SentIds,
} from '../provider.ts';
import { append } from './append.ts';
import type { Mailboxes } from './connection.ts';
import { connectionParamsOf, type ImapCredentials } from './credentials.ts';
import { findParent, hasMail, sentFolder } from './mailbox.ts';
import type { SmtpPools } from './smtp-pools.ts';

/** How long the check of the other half of a mailbox may take after the server for sending refused the password. */
const CHECK_MS = 10_000;

/**
 * Sends by SMTP. Finds sent emails, and files copies, in the mailbox behind IMAP. The id of an email is its Message-ID.
 */
export class ImapMailProvider implements MailProvider {
  constructor(
    private readonly pools: SmtpPools,
    private readonly mailboxes: Pick<Mailboxes, 'withMailbox'>,
  ) {}

  isFenced(): boolean {
    return false;
  }

  draft(): Promise<never> {
    return Promise.reject(new Error('SMTP has no drafts.'));
  }

  async discard(): Promise<boolean> {
    return false;
  }

  async sendDraft(): Promise<undefined> {
    return undefined;
  }

  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    try {
      return { ...idsOf(mail.messageId), rejected: await this.pools.send(mail, account, signal) };
    } catch (error) {
      const isRefused = error instanceof ProviderError && error.type === 'errors/invalid_credentials';
      if (isRefused && (await this.#canRead(account, signal))) throw onlyReads(account, error);
      throw error;
    }
  }

  /** Whether the password is right for the other half of the mailbox. */
  async #canRead(account: MailAccount, signal: AbortSignal): Promise<boolean> {
    const both = AbortSignal.any([signal, AbortSignal.timeout(CHECK_MS)]);
    return this.mailboxes.withMailbox(account, both, async () => true).catch(() => false);
  }

  async find({ messageId }: SendTrace, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    return this.mailboxes.withMailbox(account, signal, async (client) => {
      const folder = await sentFolder(client);
      return folder !== undefined && (await hasMail(client, folder, messageId)) ? idsOf(messageId) : undefined;
    });
  }

  async parent(providerId: string, account: MailAccount, signal: AbortSignal): Promise<Parent | undefined> {
    if (!isMessageId(providerId) || !providerId.includes('@'))
      throw new ProviderError(
        'no',
        422,
        'errors/parent_mail_invalid_provider_id',
        'reply_to: an imap account knows its emails by their Message-ID, such as <id@example.com>, with its brackets.',
      );
    return this.mailboxes.withMailbox(account, signal, (client) => findParent(client, providerId, signal));
  }

  async fileCopy(
    { messageId, sentAt, measure }: SentCopy,
    account: MailAccount,
    signal: AbortSignal,
  ): Promise<CopyResult> {
    return this.mailboxes.withMailbox(account, signal, async (client) => {
      const folder = await sentFolder(client);
      if (folder === undefined) return 'no_folder';
      // Some servers file the emails that they send, and an earlier attempt may have filed it although its answer was
      // lost.
      if (await hasMail(client, folder, messageId)) return 'found';
      const message = await measure();
      if (message === undefined) return 'too_large';
      signal.throwIfAborted();
      await append(client, folder, message, sentAt);
      return 'filed';
    });
  }
}

const idsOf = (messageId: string): SentIds => ({
  providerId: messageId,
  immutableId: null,
  thread: null,
  rejected: [],
});

const onlyReads = ({ credentials }: MailAccount, cause: Error): ProviderError =>
  new ProviderError(
    'no',
    401,
    'errors/invalid_credentials_but_valid_account_imap',
    'The mail server for sending refuses the user or the password, although the mailbox itself can be read.',
    { connectionParams: connectionParamsOf(credentials as ImapCredentials), cause },
  );
