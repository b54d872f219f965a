import { createHmac, randomUUID } from 'node:crypto';
import type { Account } from '../../accounts/accounts.ts';
import { readAddress } from '../../domain/addresses.ts';
import { isUnavailable } from '../../domain/database-unavailable.ts';
import { isId } from '../../domain/ids.ts';
import type { SendOutcome } from '../../domain/send-outcome.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { SendResult } from '../../journal/send-outcome.ts';
import { outcomeOfError } from '../../journal/send-outcome.ts';
import type { Send } from '../../journal/send-records.ts';
import type { SendClaim, SendRequest } from '../../journal/sender.ts';
import { answerSubject, compose, type Draft, isHtml, referencesOf } from '../../mail/compose.ts';
import { withContentIds } from '../../mail/content-ids.ts';
import type { Attachment } from '../../mail/mail.ts';
import { type MailAccount, type MailProvider, type Parent, ProviderError } from '../../providers/provider.ts';
import type { Rooms } from '../../rooms.ts';
import type { EmailRequest } from './schema.ts';
import { trackingOf } from './tracking.ts';

/** One valid request to send, for an account that its caller may use. */
export interface EmailJob {
  readonly account: Account;
  readonly body: EmailRequest;
  readonly attachments: readonly Attachment[];
  /** Of the send. */
  readonly id: string;
  /** Its name in the journal. Null: the request carries no idempotency key. */
  readonly idempotencyKey: string | null;
  readonly fingerprint: string;
  readonly claim: SendClaim;
}

/** Sends an email through the account's provider. */
export async function sendEmail(rooms: Rooms, job: EmailJob): Promise<SendResult> {
  const { sender, metrics } = rooms;
  const { send, messageId } = sendOf(rooms, job);
  const request = await prepare(rooms, job, send, messageId);
  const { provider } = job.account;
  const from = performance.now();
  const note = (outcome: SendOutcome, errorType?: string): void =>
    metrics.onSend(provider, outcome, errorType, (performance.now() - from) / 1_000);
  try {
    const result = await sender.send(request, job.id, job.claim);
    note('sent');
    return result;
  } catch (error) {
    note(outcomeOfError(error), typeOfError(error));
    throw error;
  }
}

/** The type in the answer to an error. */
function typeOfError(error: unknown): string {
  if (error instanceof ServiceError) return error.type;
  return isUnavailable(error) ? 'errors/service_unavailable' : 'errors/unexpected_error';
}

function sendOf({ envelope }: Rooms, { account, body, idempotencyKey, fingerprint }: EmailJob) {
  // The name of an account need not be an address, and it becomes part of a header.
  const domain = readAddress(account.name)?.split('@')[1] ?? 'localhost';
  // The same on every attempt with a key, so that an email whose outcome is unknown can be found.
  const local =
    idempotencyKey === null
      ? randomUUID()
      : createHmac('sha256', envelope.derive('message-id'))
          .update(JSON.stringify([account.application_id, idempotencyKey, fingerprint]))
          .digest('hex')
          .slice(0, 40);
  const messageId = `<${local}@${domain}>`;
  const send: SendRequest['send'] = {
    applicationId: account.application_id,
    accountId: account.id,
    idempotencyKey,
    fingerprint,
    messageId,
    label: body.tracking_options?.label ?? null,
    tracks: { opens: body.tracking_options?.opens ?? false, links: body.tracking_options?.links ?? false },
    content: { to: body.to.map(({ identifier }) => identifier), subject: body.subject ?? null, references: [] },
  };
  return { send, messageId };
}

/** @throws ServiceError if the account cannot send now, or if the parent does not exist */
async function prepare(
  rooms: Rooms,
  job: EmailJob,
  send: SendRequest['send'],
  messageId: string,
): Promise<SendRequest> {
  const { account, body, attachments } = job;
  const mail = rooms.mailAccounts.mailOf(account, rooms.providers.find(account.provider));
  if (mail === undefined)
    throw new ServiceError(
      403,
      'errors/feature_not_subscribed',
      `The provider ${account.provider} sends no email here.`,
    );
  if (account.paused_at !== null)
    throw new ServiceError(403, 'errors/action_required', 'The account is paused. Resume it to send with it.');
  if (account.status === 'disconnected')
    throw new ServiceError(
      401,
      'errors/disconnected_account',
      'The account is disconnected. Reconnect it with a new link (POST /v2/auth/link with account_id).',
    );
  const mailAccount = rooms.mailAccounts.of(account);
  const parent =
    body.reply_to === undefined ? undefined : await parentOf(rooms, mail, mailAccount, account, body.reply_to);
  const references = parent === undefined ? [] : referencesOf(parent);
  const subject = body.subject ?? answerSubject(parent?.subject);
  const customHeaders = body.custom_headers ?? [];
  const draft: Draft = {
    messageId,
    date: new Date(rooms.clock()),
    from: { address: body.from?.identifier ?? account.name, name: body.from?.display_name },
    to: body.to.map(mailboxOf),
    cc: (body.cc ?? []).map(mailboxOf),
    bcc: (body.bcc ?? []).map(mailboxOf),
    subject,
    body: body.body,
    customHeaders,
    attachments: isHtml({ body: body.body, customHeaders }) ? withContentIds(attachments, body.body) : attachments,
    parent,
  };
  const track = await trackingOf(rooms, account, body, draft);
  return {
    send: { ...send, content: { ...send.content, subject: subject ?? null, references } },
    mailAccount,
    mail,
    compose: async (id) => compose({ ...draft, trackedBody: await track?.(id) }),
  };
}

const mailboxOf = ({ identifier, display_name }: EmailRequest['to'][number]) => ({
  address: identifier,
  name: display_name,
});

/** The email that `reply_to` names: sent by this account through the service, or found at its provider. */
async function parentOf(
  { sends, config }: Rooms,
  mail: MailProvider,
  mailAccount: MailAccount,
  account: Account,
  replyTo: string,
): Promise<Parent> {
  const row = isId(replyTo, 'eml')
    ? await sends.records.byId(account.application_id, replyTo)
    : await sends.records.byProviderId(account.application_id, account.id, replyTo);
  if (row !== undefined && row.account_id === account.id && row.state === 'sent') return parentFromJournal(sends, row);
  const parent = isId(replyTo, 'eml')
    ? undefined
    : await mail.parent(replyTo, mailAccount, AbortSignal.timeout(config.SEND_TIMEOUT_MS)).catch(beforeTheSend);
  if (parent === undefined)
    throw new ServiceError(
      422,
      'errors/parent_mail_not_found',
      'reply_to: the account has no email with this id. Use a tracking_id, or the provider’s id.',
    );
  return parent;
}

function parentFromJournal(sends: Rooms['sends'], row: Send): Parent {
  const content = sends.records.contentOf(row);
  return {
    messageId: row.message_id,
    references: content?.references ?? [],
    subject: content?.subject ?? undefined,
    thread: row.thread_ref ?? undefined,
  };
}

/** An error of a provider is charged, and its verdict is stored. This error comes before the send, so it is neither. */
function beforeTheSend(error: unknown): never {
  if (!(error instanceof ProviderError)) throw error;
  const { status, type, message, retryAfter, connectionParams } = error;
  // The pair came from a ServiceError, whose constructor checked it.
  const checked = [status, type, message, { retryAfter, connectionParams, cause: error }];
  throw new ServiceError(...(checked as unknown as ConstructorParameters<typeof ServiceError>));
}
