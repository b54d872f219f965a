import type { NodemailerError } from 'nodemailer';
import type { ErrorTypesByStatus } from '../../domain/error-types.ts';
import { EgressError, type EgressFailure } from '../../security/net.ts';
import { proxyRefused } from '../network-error.ts';
import { ProviderError } from '../provider.ts';
import { connectionParamsOf, type ImapCredentials } from './credentials.ts';
import { TLS_CODE } from './open-mailbox.ts';
import { repeats, withoutServerWords } from './server-words.ts';

/**
 * How much of the message the connection took. The server sends the email after the line that follows the end of the
 * message, so before `all` the email was certainly not sent.
 */
export type Handover = 'none' | 'part' | 'all';

/** The known facts about the attempt that an error ended. */
export interface SmtpAttempt {
  readonly handover: Handover;
  readonly credentials: ImapCredentials;
  /** Whether this process already sent an email with these credentials. */
  readonly hasWorked: boolean;
}

/** A server's refusal, read once. */
interface Reply {
  readonly code: number;
  /** The enhanced code of RFC 3463, such as `5.7.1`. */
  readonly enhanced: string;
  readonly text: string;
  /** For the client: the reply without addresses of people. Nothing of it if it repeats the password. */
  readonly shown: string;
  /**
   * The command that the server refused, as nodemailer names it: `MAIL FROM`, `RCPT TO`, `DATA`, `CONN`, `AUTH PLAIN`.
   */
  readonly command: string;
}

const MAX_SHOWN = 200;
const NOT_SHOWN = '(not shown: the reply repeats the password)';
/** How much of a reply is read. Some patterns take time that grows with the square of a text. */
const MAX_REPLY = 2_000;

const RATE =
  /\b(?:rate|throttl\w*|too (?:many|fast|much)|slow down|(?:sending|daily|hourly|message) (?:limit|quota))\b/i;
const IP_ADDRESS = /\b(?:\d{1,3}\.){3}\d{1,3}\b|\[(?:ipv6:)?[0-9a-f:]*:[0-9a-f:]+\]/i;
const BLOCKED = /\b(?:block(?:ed|list)|black ?list|deny ?list|spamhaus|rbl|dnsbl|reputation|banned)/i;
const SENDER = /sender address rejected|sender (?:verify|rejected|denied)|invalid sender/i;
const SEND_AS =
  /\bsend(?:ing)?[ -]?as\b|not owned by|on behalf of|permissions? to send|not (?:allowed|authori[sz]ed) to send/i;
const SIZE_CODES: ReadonlySet<string> = new Set(['5.2.3', '5.3.4']);
/** RFC 3463: the account reached its limit of the day. */
const DAILY_LIMIT = '5.4.5';
const BEFORE_LOGIN: ReadonlySet<string> = new Set(['CONN', 'EHLO', 'HELO']);
const SIZE = /\b(?:size|too (?:big|large))\b/i;

/** The error of a failed attempt, as the client sees it, and whether the email may have been sent. */
export function smtpError(thrown: unknown, attempt: SmtpAttempt): ProviderError {
  const { code, originalCode = '' } = thrown as NodemailerError;
  const reply = replyOf(thrown as NodemailerError, attempt.credentials.smtp.password);
  const error = withoutServerWords(thrown);
  // Before all others: once the server received all of the email, only its reply proves that it does not send it.
  if (reply === undefined && attempt.handover === 'all')
    return new ProviderError(
      'unknown',
      504,
      'errors/request_timeout',
      'The mail server took the whole message, and the connection ended before it said whether it sends it.',
      { cause: error },
    );
  if (error instanceof EgressError) return egressError(error, attempt);
  if (code === 'EAUTH' || code === 'ENOAUTH') return authError(error, reply, attempt);
  if ((code === 'ETLS' && !isTemporary(reply)) || TLS_CODE.test(originalCode)) return tlsError(error, attempt);
  if (reply !== undefined) return replyError(error, reply, attempt);
  if (code === 'ESTREAM')
    return new ProviderError(
      'no',
      500,
      'errors/unexpected_error',
      'The message could not be read while it was sent. It was not sent.',
      { cause: error },
    );
  if (code === 'EABORT')
    return new ProviderError(
      'no',
      504,
      'errors/request_timeout',
      'The mail server did not take the message in time. It was not sent.',
      { cause: error },
    );
  if (code === 'EPROTOCOL')
    return unavailable('The mail server for sending does not answer as a mail server does.', error);
  if (code === 'EENVELOPE')
    return new ProviderError(
      'no',
      422,
      'errors/invalid_recipient',
      'An address cannot be used with this mail server.',
      {
        cause: error,
      },
    );
  return networkDown('The connection to the mail server for sending ended before the message was sent.', error);
}

/** Whether the connection ended before anything of the message was read, as a connection that was idle may do. */
export const isConnectionLost = (error: unknown): boolean =>
  (error as Partial<NodemailerError>).code === 'ECONNECTION' && !isRefusal(error as NodemailerError);

/** Whether the server refused a connection or its login for now, before it knew of any email. */
export function isConnectionRefused(error: unknown): boolean {
  const { responseCode = 0, command = '' } = error as NodemailerError;
  const isBefore = BEFORE_LOGIN.has(command) || command.startsWith('AUTH');
  return isBefore && isRefusal(error as NodemailerError) && responseCode < 500;
}

/** Any other code answers something else: it does not say that the server refuses anything. */
const isRefusal = ({ response, responseCode }: NodemailerError): boolean =>
  typeof response === 'string' && responseCode !== undefined && responseCode >= 400 && responseCode < 600;

function replyOf(error: NodemailerError, password: string): Reply | undefined {
  if (!isRefusal(error)) return undefined;
  const { response = '', responseCode = 0, command = '' } = error;
  const text = response.slice(0, MAX_REPLY).replace(/\s+/g, ' ');
  const shown = repeats(response, password)
    ? NOT_SHOWN
    : text
        .replace(/[^\s<>]+@[^\s<>]+/g, '…')
        .replace(/[^\x20-\x7e…]/g, '')
        .slice(0, MAX_SHOWN);
  const [, enhanced = ''] = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(text) ?? [];
  return { code: responseCode, enhanced, text, shown, command };
}

const isTemporary = (reply: Reply | undefined): boolean => reply !== undefined && reply.code < 500;

const networkDown = (detail: string, cause: unknown): ProviderError =>
  new ProviderError('no', 503, 'errors/network_down', detail, { cause });

const unavailable = (detail: string, cause: unknown): ProviderError =>
  new ProviderError('no', 503, 'errors/service_unavailable', detail, { cause });

const misconfigured = (detail: string, { credentials }: SmtpAttempt, cause: unknown): ProviderError =>
  new ProviderError('no', 401, 'errors/invalid_smtp_configuration', detail, {
    connectionParams: connectionParamsOf(credentials),
    cause,
  });

const NOT_CONNECTED: Readonly<Record<Exclude<EgressFailure, 'proxy_credentials'>, string>> = {
  forbidden: 'The address or the port of the mail server for sending is not allowed here.',
  unresolved: 'The name of the mail server for sending resolves to no address.',
  refused: 'The mail server for sending cannot be reached.',
  timeout: 'The mail server for sending did not answer in time.',
  tls: 'No secure connection to the mail server for sending could be made.',
};

function egressError(error: EgressError, attempt: SmtpAttempt): ProviderError {
  const { failure } = error;
  if (failure === 'proxy_credentials')
    return proxyRefused({ connectionParams: connectionParamsOf(attempt.credentials), cause: error });
  const detail = NOT_CONNECTED[failure];
  if (failure === 'forbidden') return misconfigured(detail, attempt, error);
  if (failure === 'tls') return tlsError(error, attempt);
  // If the name worked before, it resolves again when the name server answers again.
  if (failure === 'unresolved' && !attempt.hasWorked) return misconfigured(detail, attempt, error);
  return networkDown(detail, error);
}

/** If TLS with the server worked before, its operator repairs it; otherwise the settings here are wrong. */
const tlsError = (error: unknown, attempt: SmtpAttempt): ProviderError =>
  attempt.hasWorked ? networkDown(NOT_CONNECTED.tls, error) : misconfigured(NOT_CONNECTED.tls, attempt, error);

function authError(error: unknown, reply: Reply | undefined, attempt: SmtpAttempt): ProviderError {
  if (isTemporary(reply)) return unavailable('The mail server for sending cannot check the password now.', error);
  // Without a reply, no way to log in was found. 500 to 504: the server knows no login.
  if (reply === undefined || (reply.code >= 500 && reply.code <= 504))
    return misconfigured('The mail server for sending offers no login with a password.', attempt, error);
  return new ProviderError(
    'no',
    401,
    'errors/invalid_credentials',
    'The mail server for sending refuses the user or the password.',
    { connectionParams: connectionParamsOf(attempt.credentials), cause: error },
  );
}

/** The meaning of a permanent refusal. The first match counts. */
const REFUSALS: readonly {
  readonly fits: (reply: Reply) => boolean;
  readonly type: ErrorTypesByStatus[422];
  readonly what: string;
}[] = [
  {
    fits: ({ enhanced, text }) => IP_ADDRESS.test(text) && (enhanced.startsWith('5.7.') || BLOCKED.test(text)),
    type: 'errors/ip_rejected_by_server',
    what: 'The mail server refuses the address that this service sends from.',
  },
  {
    fits: ({ command, enhanced, text }) =>
      SEND_AS.test(text) || (command === 'MAIL FROM' && enhanced.startsWith('5.7.')),
    type: 'errors/send_as_denied',
    what: 'The account may not send with this sender.',
  },
  {
    fits: ({ command, code, enhanced, text }) =>
      command !== 'RCPT TO' && (code === 552 || SIZE_CODES.has(enhanced) || SIZE.test(text)),
    type: 'errors/limit_exceeded',
    what: 'The email is too large.',
  },
  {
    // Many servers judge the sender together with the first recipient.
    fits: ({ command, text }) => command === 'MAIL FROM' || (command === 'RCPT TO' && SENDER.test(text)),
    type: 'errors/sender_rejected',
    what: 'The sender is refused.',
  },
  {
    fits: ({ command }) => command === 'RCPT TO',
    type: 'errors/recipient_rejected',
    what: 'Every recipient is refused.',
  },
  { fits: () => true, type: 'errors/cant_send_message', what: 'The email is refused.' },
];

function refusalOf(reply: Reply) {
  const refusal = REFUSALS.find(({ fits }) => fits(reply));
  if (refusal === undefined) throw new Error('The last refusal fits every reply.');
  return refusal;
}

/** The server refused: however much of the email it received, it does not send it. */
function replyError(error: unknown, reply: Reply, attempt: SmtpAttempt): ProviderError {
  const { code, enhanced, text, shown, command } = reply;
  const isLimit = enhanced === DAILY_LIMIT || (isTemporary(reply) && (enhanced.startsWith('4.7.') || RATE.test(text)));
  if (isLimit)
    return new ProviderError(
      'no',
      429,
      'provider/too_many_requests',
      `The mail server wants fewer emails. It says: ${shown}`,
      { cause: error },
    );
  if (isTemporary(reply)) return unavailable(`The mail server cannot take the email now. It says: ${shown}`, error);
  if (code === 530 || code === 535) return authError(error, reply, attempt);
  const { type, what } = refusalOf(reply);
  if (BEFORE_LOGIN.has(command) && type !== 'errors/ip_rejected_by_server')
    return unavailable(`The mail server for sending takes no connection. It says: ${shown}`, error);
  return new ProviderError('no', 422, type, `${what} The mail server says: ${shown}`, { cause: error });
}
