import type { Clock } from '../../domain/clock.ts';
import { messageIdsIn } from '../../domain/message-id.ts';
import type { ComposedMail } from '../../mail/mail.ts';
import type { OAuthCredentials } from '../oauth/credentials.ts';
import {
  type MailAccount,
  type MailProvider,
  type Parent,
  ProviderError,
  type SendTrace,
  type SentIds,
} from '../provider.ts';
import type { GmailApi } from './gmail-api.ts';
import { COMPOSE, METADATA } from './scopes.ts';
import { type MailUpload, mailUpload } from './upload.ts';

/** The stored facts about a draft. */
interface DraftName {
  readonly id: string;
  readonly threadId: string;
  /** When it was stored, in milliseconds since 1970. */
  readonly at: number;
}

/** The used parts of Gmail's answers. */
interface Message {
  readonly id: string;
  readonly threadId: string;
  readonly labelIds?: readonly string[];
  /** Milliseconds since 1970. */
  readonly internalDate?: string;
  readonly payload?: { readonly headers?: readonly { readonly name: string; readonly value: string }[] };
}
interface Draft {
  readonly id: string;
  readonly message: Pick<Message, 'id' | 'threadId'>;
}
interface Thread {
  readonly messages?: readonly Message[];
}

/** How long the sender waits for the `Message-ID` of an email that is sent. */
const READ_BACK_MS = 5_000;
/** How far Gmail's clock may be behind ours, in milliseconds. */
const CLOCK_SKEW_MS = 120_000;
/** Where Gmail writes our Message-ID if it replaces it. */
const ORIGINAL_ID = 'X-Google-Original-Message-ID';

const metadata = (...headers: readonly string[]): readonly (readonly [string, string])[] => [
  ['format', 'metadata'],
  ...headers.map((name) => ['metadataHeaders', name] as const),
];

/**
 * Sends by Gmail. An account that may store drafts is fenced: the email is stored as a draft, and Gmail sends a draft
 * once. An account with the permission to send, and no other, is not.
 */
export class GoogleMailProvider implements MailProvider {
  constructor(
    private readonly api: GmailApi,
    private readonly clock: Clock,
  ) {}

  isFenced(account: MailAccount): boolean {
    return isGranted(account, COMPOSE);
  }

  async draft(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<string> {
    const draft = await withThread(mail, (message) =>
      this.api.call<Draft>(account, {
        method: 'POST',
        path: 'drafts',
        upload: () => mailUpload(mail, { message }, signal),
        signal,
      }),
    );
    if (typeof draft?.id !== 'string' || typeof draft.message?.threadId !== 'string')
      throw new ProviderError('no', 500, 'errors/provider_error', 'Google has not stored the draft.');
    const name: DraftName = { id: draft.id, threadId: draft.message.threadId, at: this.clock() };
    return JSON.stringify(name);
  }

  async discard(draft: string, account: MailAccount, signal: AbortSignal): Promise<boolean> {
    return (await this.api.call(account, { method: 'DELETE', path: draftPath(draft), signal })) !== undefined;
  }

  /**
   * An error says that nothing was sent only if the draft is still there. An interrupted attempt may have sent the
   * draft before this attempt was refused, for example because of a rate limit.
   */
  async sendDraft(draft: string, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    let message: Message | undefined;
    try {
      message = await this.api.call<Message>(account, {
        method: 'POST',
        path: 'drafts/send',
        json: { id: nameOf(draft).id },
        sentWithoutAnswer: () => 'unknown',
        signal,
      });
    } catch (error) {
      if (!(error instanceof ProviderError) || error.sent === 'unknown') throw error;
      const isThere = await this.#isThere(draft, account, signal).catch(() => undefined);
      if (isThere === false) return undefined;
      throw isThere === true ? error : withUnknownOutcome(error);
    }
    return message && this.#idsOf(message, account, signal);
  }

  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    const message = await withThread(mail, (description) => {
      let upload: MailUpload | undefined;
      return this.api.call<Message>(account, {
        method: 'POST',
        path: 'messages/send',
        upload: () => {
          upload = mailUpload(mail, description, signal);
          return upload;
        },
        sentWithoutAnswer: () => (upload?.isRead() ? 'unknown' : 'no'),
        signal,
      });
    });
    if (message === undefined)
      throw new ProviderError('no', 500, 'errors/provider_error', 'Google does not find where to send the email.');
    return this.#idsOf(message, account, signal);
  }

  async find({ messageId, draft }: SendTrace, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    // Without a draft, there is no permission to look for the email.
    if (draft === null || !isGranted(account, METADATA)) return undefined;
    if (await this.#isThere(draft, account, signal)) return undefined;
    const { threadId, at } = nameOf(draft);
    const thread = await this.api.call<Thread>(account, {
      method: 'GET',
      path: `threads/${encodeURIComponent(threadId)}`,
      query: metadata('Message-ID', ORIGINAL_ID),
      signal,
    });
    const sent = (thread?.messages ?? []).filter(({ labelIds }) => labelIds?.includes('SENT') ?? false);
    const isOurs = (message: Message): boolean =>
      ['Message-ID', ORIGINAL_ID].some((name) => headerOf(message, name) === messageId);
    // If Gmail replaced our Message-ID: the email of this conversation that was sent after the draft was stored.
    const isLater = ({ internalDate }: Message): boolean => Number(internalDate) >= at - CLOCK_SKEW_MS;
    const found = sent.find(isOurs) ?? sent.findLast(isLater);
    return found && idsOf(found);
  }

  async parent(providerId: string, account: MailAccount, signal: AbortSignal): Promise<Parent | undefined> {
    if (!/^[\w-]{1,64}$/.test(providerId))
      throw new ProviderError(
        'no',
        422,
        'errors/parent_mail_invalid_provider_id',
        'reply_to: not an id of a Gmail message. Use a tracking_id, or the id of a message as the Gmail API names it.',
      );
    if (!isGranted(account, METADATA)) return undefined;
    const message = await this.api.call<Message>(account, {
      method: 'GET',
      path: `messages/${providerId}`,
      query: metadata('Message-ID', 'References', 'Subject'),
      signal,
    });
    const messageId = message && headerOf(message, 'Message-ID');
    if (message === undefined || messageId === undefined) return undefined;
    const references = messageIdsIn(headerOf(message, 'References') ?? '');
    return { messageId, references, subject: headerOf(message, 'Subject'), thread: message.threadId };
  }

  async #isThere(draft: string, account: MailAccount, signal: AbortSignal): Promise<boolean> {
    const query = [['format', 'minimal']] as const;
    return (await this.api.call(account, { method: 'GET', path: draftPath(draft), query, signal })) !== undefined;
  }

  /** Gmail may replace the Message-ID. Replies name the id that recipients see, so it is read back. */
  async #idsOf(message: Message, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    if (!isGranted(account, METADATA)) return idsOf(message);
    const sent = await this.api
      .call<Message>(account, {
        method: 'GET',
        path: `messages/${encodeURIComponent(message.id)}`,
        query: metadata('Message-ID'),
        signal: AbortSignal.any([signal, AbortSignal.timeout(READ_BACK_MS)]),
      })
      // The email is sent, whatever happens now.
      .catch(() => undefined);
    return idsOf({ ...message, ...(sent?.payload === undefined ? {} : { payload: sent.payload }) });
  }
}

/** If the conversation was deleted, the email begins a new one. Its `References` name the parent all the same. */
const withThread = async <Answer>(
  { thread: threadId }: ComposedMail,
  call: (description: { readonly threadId?: string }) => Promise<Answer | undefined>,
): Promise<Answer | undefined> =>
  threadId === undefined ? call({}) : ((await call({ threadId })) ?? (await call({})));

const isGranted = ({ credentials }: MailAccount, scope: string): boolean =>
  (credentials as OAuthCredentials).scope.split(' ').includes(scope);

const nameOf = (draft: string): DraftName => JSON.parse(draft) as DraftName;
const draftPath = (draft: string): string => `drafts/${encodeURIComponent(nameOf(draft).id)}`;

const headerOf = ({ payload }: Message, name: string): string | undefined =>
  payload?.headers?.find((header) => header.name.toLowerCase() === name.toLowerCase())?.value.trim();

const idsOf = (message: Message): SentIds => ({
  providerId: message.id,
  immutableId: null,
  thread: message.threadId,
  messageId: headerOf(message, 'Message-ID'),
  rejected: [],
});

function withUnknownOutcome(error: ProviderError): ProviderError {
  const { status, type, message, retryAfter } = error;
  // The pair came from a ProviderError, whose constructor checked it.
  return new ProviderError('unknown', status, type, message, { retryAfter, cause: error });
}
