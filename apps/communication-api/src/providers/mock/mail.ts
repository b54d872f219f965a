import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ERROR_STATUSES, type ErrorStatus, type ErrorTypesByStatus, errorTypesOf } from '../../domain/error-types.ts';
import type { ComposedMail } from '../../mail/mail.ts';
import { type MailAccount, type MailProvider, ProviderError, type SendTrace, type SentIds } from '../provider.ts';
import type { MockCredentials } from './credentials.ts';
import { MAX_RAW, type MockMail, type MockMailbox, type MockMessage, numberIn, providerIdOf } from './mailbox.ts';

/** Addresses of this domain choose the mock's behaviour. All other emails are delivered. */
const DOMAIN = '@mock.test';

/** The behaviour that an address chooses. */
type Behaviour =
  | { readonly kind: 'error'; readonly status: ErrorStatus; readonly type: ErrorTypesByStatus[ErrorStatus] }
  | { readonly kind: 'delay' | 'slow'; readonly ms: number }
  | { readonly kind: 'drop' | 'partial' };

const LONGEST_MS = 600_000;
/** The id of a draft begins with this if no recipient chooses a behaviour: it need not be read before it is sent. */
const PLAIN = 'plain-';

/**
 * Sends into its own mailboxes. Addresses choose the behaviour: `error.<status>.<type>@mock.test` (the type without its
 * prefix) causes that error; `limit` causes the provider's own 429; `delay.<ms>` waits before the email is accepted,
 * `slow.<ms>` after it; `drop` accepts the email and loses the answer; `partial` is refused while the other recipients
 * get the email.
 */
export class MockMailProvider implements MailProvider {
  constructor(private readonly mailbox: MockMailbox) {}

  isFenced({ credentials }: MailAccount): boolean {
    return (credentials as MockCredentials).drafts;
  }

  async draft(mail: ComposedMail, account: MailAccount): Promise<string> {
    const isPlain = mail.recipients.every((address) => behaviourOf(address) === undefined);
    const id = `${isPlain ? PLAIN : ''}${randomUUID()}`;
    await this.mailbox.saveDraft(account.id, id, await read(mail));
    return id;
  }

  async discard(draft: string, account: MailAccount): Promise<boolean> {
    return this.mailbox.deleteDraft(account.id, draft);
  }

  async sendDraft(draft: string, account: MailAccount, signal: AbortSignal): Promise<SentIds | undefined> {
    if (draft.startsWith(PLAIN)) {
      const message = await this.mailbox.deliverDraft(account.id, draft);
      return message && idsOf(message, []);
    }
    const stored = await this.mailbox.draft(account.id, draft);
    if (stored === undefined) return undefined;
    return this.#effect(stored.recipients, signal, () => this.mailbox.deliverDraft(account.id, draft));
  }

  async send(mail: ComposedMail, account: MailAccount, signal: AbortSignal): Promise<SentIds> {
    const message = await read(mail);
    const ids = await this.#effect(message.recipients, signal, () => this.mailbox.deliver(account.id, message));
    if (ids === undefined) throw new Error('The mock delivered nothing.');
    return ids;
  }

  async find({ messageId }: SendTrace, account: MailAccount): Promise<SentIds | undefined> {
    const message = await this.mailbox.byMessageId(account.id, messageId);
    return message && idsOf(message, refusedOf(message.recipients));
  }

  async parent(providerId: string, account: MailAccount) {
    const number = numberIn(providerId);
    if (number === undefined)
      throw new ProviderError(
        'no',
        422,
        'errors/parent_mail_invalid_provider_id',
        'reply_to: neither a tracking_id nor an id of the provider. The mock’s ids look like mock-1.',
      );
    const message = await this.mailbox.byId(account.id, number);
    // If the service sent the email, the journal contains its subject.
    return message && { messageId: message.messageId, references: [], subject: undefined, thread: message.thread };
  }

  /** Delivers, as the addresses of the recipients ask for. Undefined: there was nothing to deliver. */
  async #effect(
    recipients: readonly string[],
    signal: AbortSignal,
    deliver: () => Promise<MockMessage | undefined>,
  ): Promise<SentIds | undefined> {
    const behaviours = recipients.flatMap((address) => behaviourOf(address) ?? []);
    const wait = async (kind: 'delay' | 'slow'): Promise<void> => {
      for (const behaviour of behaviours) if (behaviour.kind === kind) await pause(behaviour.ms, undefined, { signal });
    };
    await wait('delay');
    const mistyped = recipients.find(isMistyped);
    if (mistyped !== undefined)
      throw new ProviderError('no', 422, 'errors/invalid_recipient', `The mock knows no error named ${mistyped}.`);
    const error = behaviours.find((behaviour) => behaviour.kind === 'error');
    if (error !== undefined) throw mockError(error.status, error.type);
    const refused = refusedOf(recipients);
    if (refused.length === recipients.length)
      throw new ProviderError('no', 422, 'errors/recipient_rejected', 'The mock refuses every recipient.');
    const message = await deliver();
    if (message === undefined) return undefined;
    await wait('slow');
    if (behaviours.some(({ kind }) => kind === 'drop'))
      throw new ProviderError('unknown', 504, 'errors/request_timeout', 'The mock has lost its answer.');
    return idsOf(message, refused);
  }
}

const idsOf = (message: MockMessage, rejected: readonly string[]): SentIds => ({
  providerId: providerIdOf(message),
  immutableId: null,
  thread: message.thread,
  rejected,
});

const refusedOf = (recipients: readonly string[]): readonly string[] =>
  recipients.filter((address) => behaviourOf(address)?.kind === 'partial');

/** An address that asks for an error that the mock does not know. */
const isMistyped = (address: string): boolean =>
  /^error\..*@mock\.test$/i.test(address) && behaviourOf(address) === undefined;

/** The behaviour that an address asks for; undefined: normal delivery. */
export function behaviourOf(address: string): Behaviour | undefined {
  if (!address.toLowerCase().endsWith(DOMAIN)) return undefined;
  const [kind = '', ...rest] = address.slice(0, -DOMAIN.length).toLowerCase().split('.');
  const value = rest.join('.');
  if (kind === 'drop' || kind === 'partial') return value === '' ? { kind } : undefined;
  if (kind === 'limit' && value === '') return { kind: 'error', status: 429, type: 'provider/too_many_requests' };
  if (kind === 'delay' || kind === 'slow')
    return /^\d{1,6}$/.test(value) ? { kind, ms: Math.min(Number(value), LONGEST_MS) } : undefined;
  if (kind !== 'error' || rest.length !== 2) return undefined;
  const status = ERROR_STATUSES.find((each) => String(each) === rest[0]);
  // A provider never returns our own types, such as `api/too_many_requests`.
  const type =
    status && errorTypesOf(status).find((each) => !each.startsWith('api/') && each.split('/')[1] === rest[1]);
  return status !== undefined && type !== undefined ? { kind, status, type } : undefined;
}

const mockError = (status: ErrorStatus, type: ErrorTypesByStatus[ErrorStatus]): ProviderError => {
  // A client can check that it reads these; the values are the mock's own.
  const connectionParams = {
    ...{ imap_host: 'imap.mock.test', imap_port: 993, imap_user: 'ann@mock.test', imap_encryption: 'SSL' },
    ...{ smtp_host: 'smtp.mock.test', smtp_port: 465, smtp_user: 'ann@mock.test' },
  };
  const isMail = type === 'errors/invalid_imap_configuration' || type === 'errors/invalid_smtp_configuration';
  // behaviourOf() found the type among the types of the status.
  return new ProviderError<ErrorStatus>('no', status, type, `The mock answers ${type}, as the recipient asks.`, {
    ...(isMail || type === 'errors/invalid_credentials_but_valid_account_imap' ? { connectionParams } : {}),
  });
};

/** Reads a message to its end, and stores its beginning. */
async function read(mail: ComposedMail): Promise<MockMail> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of mail.open() as AsyncIterable<Uint8Array>) {
    if (size < MAX_RAW) chunks.push(chunk.subarray(0, MAX_RAW - size));
    size += chunk.length;
  }
  const { messageId, recipients, thread = randomUUID() } = mail;
  return { messageId, recipients, thread, raw: Buffer.concat(chunks), size };
}
