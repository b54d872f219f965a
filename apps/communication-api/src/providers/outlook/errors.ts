import type { ErrorStatus, ErrorTypesByStatus } from '../../domain/error-types.ts';
import { networkError } from '../network-error.ts';
import { ProviderError, type Sent } from '../provider.ts';
import { GraphError } from './graph.ts';

type Pair = {
  [Status in ErrorStatus]: [status: Status, type: ErrorTypesByStatus[Status], detail: string];
}[ErrorStatus];

const DENIED: Pair = [
  403,
  'errors/insufficient_permissions',
  'Outlook does not allow this. The user, or the administrator of the mailbox, must give the permission: reconnect the account.',
];
const TOO_MANY: Pair = [429, 'provider/too_many_requests', 'Outlook limits this mailbox now. Try again later.'];
const TOO_LARGE: Pair = [422, 'errors/limit_exceeded', 'The email is larger than Outlook allows for this mailbox.'];
const RECIPIENTS: Pair = [422, 'errors/invalid_recipient', 'Outlook does not accept a recipient.'];
const SEND_AS: Pair = [422, 'errors/send_as_denied', 'The mailbox may not send as the address in `from`.'];
const NO_MAILBOX: Pair = [
  422,
  'errors/account_configuration_error',
  'The account has no mailbox that Microsoft Graph can use.',
];
const SUSPENDED: Pair = [
  403,
  'errors/account_restricted',
  'Microsoft has suspended sending from this mailbox. Its owner must sign in to Outlook and follow the instructions.',
];
const FULL: Pair = [422, 'errors/limit_exceeded', 'The mailbox is full.'];
const UNAVAILABLE: Pair = [503, 'errors/service_unavailable', 'Outlook is not available now. Try again later.'];

/** By Graph's own code: it is more exact than the status. */
export const BY_CODE: Readonly<Record<string, Pair>> = {
  ErrorAccessDenied: DENIED,
  Authorization_RequestDenied: DENIED,
  AccessDenied: DENIED,
  ApplicationThrottled: TOO_MANY,
  MailboxConcurrency: TOO_MANY,
  ErrorSubmissionQuotaExceeded: TOO_MANY,
  ErrorExceededMessageLimit: TOO_MANY,
  ErrorMessageSizeExceeded: TOO_LARGE,
  ErrorAttachmentSizeLimitExceeded: TOO_LARGE,
  RequestEntityTooLarge: TOO_LARGE,
  ErrorInvalidRecipients: RECIPIENTS,
  ErrorRecipientLimitExceeded: [422, 'errors/limit_exceeded', 'The email has more recipients than Outlook allows.'],
  ErrorSendAsDenied: SEND_AS,
  ErrorQuotaExceeded: FULL,
  MailboxNotEnabledForRESTAPI: NO_MAILBOX,
  MailboxNotSupportedForRESTAPI: NO_MAILBOX,
  ErrorNonExistentMailbox: NO_MAILBOX,
  ErrorAccountSuspend: SUSPENDED,
  ErrorAccountSuspendShowTierUpgrade: SUSPENDED,
  ErrorMailboxStoreUnavailable: UNAVAILABLE,
  ErrorMailboxMoveInProgress: UNAVAILABLE,
  ErrorServerBusy: UNAVAILABLE,
};

const BY_STATUS: Readonly<Record<number, Pair>> = { 403: DENIED, 413: TOO_LARGE, 429: TOO_MANY, 503: UNAVAILABLE };

/**
 * The meaning of an error of Graph for the email.
 * @param atSend the request was the request that sends the email. After it, an error of the server, or a connection
 * that breaks, proves nothing: Graph answered 504 to requests that did send
 */
export function outlookError(error: unknown, atSend = false): Error {
  if (error instanceof ProviderError) return error;
  const onDoubt: Sent = atSend ? 'unknown' : 'no';
  if (!(error instanceof GraphError)) return networkError('Outlook', error, onDoubt);
  const { status, code, retryAfter } = error;
  const extras = { cause: error, ...(retryAfter === undefined ? {} : { retryAfter }) };
  if (atSend && status >= 500)
    return new ProviderError('unknown', 504, 'errors/request_timeout', 'Outlook did not say whether it sent.', extras);
  const [answer, type, detail] = (BY_CODE[code] ?? BY_STATUS[status] ?? pairOf(status, code)) as [never, never, string];
  return new ProviderError('no', answer, type, detail, extras);
}

const pairOf = (status: number, code: string): Pair =>
  status >= 400 && status < 500
    ? [422, 'errors/cant_send_message', `Outlook does not accept the email (${code || status}).`]
    : [500, 'errors/provider_error', `Outlook failed (${code || status}).`];
