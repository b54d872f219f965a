import type { ErrorExtras } from '../../domain/service-error.ts';
import { errorNameOf, retryAfterOf, secondsUntil } from '../answers.ts';
import { ProviderError, type Sent } from '../provider.ts';

/** An error as Google's APIs describe it. */
interface GoogleError {
  readonly message: string;
  /** For example `PERMISSION_DENIED`. */
  readonly status: string;
  /** For example `rateLimitExceeded`. */
  readonly reasons: readonly string[];
}

const RATE_LIMITS: readonly string[] = [
  'rateLimitExceeded',
  'userRateLimitExceeded',
  'dailyLimitExceeded',
  'quotaExceeded',
  'RATE_LIMIT_EXCEEDED',
];
const MISSING_PERMISSIONS: readonly string[] = ['insufficientPermissions', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT'];
/** The operator's project at Google is not set up. */
const PROJECT: readonly string[] = ['accessNotConfigured', 'SERVICE_DISABLED'];

/**
 * The error of an answer that refuses a request. The answers 401 and 404 are handled by their callers.
 * @param sentByFault whether the email was sent if the fault is Google's
 */
export function gmailError(
  { status: code, headers }: Pick<Response, 'status' | 'headers'>,
  text: string,
  sentByFault: Sent,
  now: number,
): ProviderError {
  const { message, status, reasons } = readError(text);
  const has = (list: readonly string[]): boolean => list.some((reason) => reasons.includes(reason));
  const cause = new Error(`Google answered ${code} ${[status, ...reasons].join(' ')}`.trim());
  const extras: ErrorExtras = { cause };
  if (code === 429 || (code === 403 && has(RATE_LIMITS)))
    return new ProviderError('no', 429, 'provider/too_many_requests', 'Google allows no more requests now.', {
      cause,
      retryAfter: waitOf(headers, message, now),
    });
  if (code === 403 && has(MISSING_PERMISSIONS))
    return new ProviderError(
      'no',
      403,
      'errors/insufficient_permissions',
      'The account did not give the permission for this. Reconnect it with a new link.',
      extras,
    );
  if (code === 403 && has(PROJECT))
    return new ProviderError(
      'no',
      500,
      'errors/provider_error',
      'The operator must enable the Gmail API in the project of GOOGLE_CLIENT_ID.',
      extras,
    );
  if (code === 403)
    return new ProviderError(
      'no',
      403,
      'errors/resource_access_restricted',
      'Google refuses this account. Its administrator may have restricted Gmail.',
      extras,
    );
  if (code === 400 && (reasons.includes('failedPrecondition') || status === 'FAILED_PRECONDITION'))
    return new ProviderError(
      'no',
      422,
      'errors/account_configuration_error',
      'The Google account has no mailbox that can be used now.',
      extras,
    );
  if (code === 400 && /recipient|\b(?:to|cc|bcc) header/i.test(message))
    return new ProviderError('no', 422, 'errors/invalid_recipient', 'Google refuses a recipient.', extras);
  if (code === 400)
    return new ProviderError('no', 422, 'errors/cant_send_message', 'Google refuses the email.', extras);
  if (code === 413)
    return new ProviderError('no', 422, 'errors/limit_exceeded', 'The email is too large for Google.', extras);
  return new ProviderError(sentByFault, 500, 'errors/provider_error', `Google failed with status ${code}.`, extras);
}

function readError(text: string): GoogleError {
  let error: unknown;
  try {
    error = (JSON.parse(text) as { error?: unknown } | null)?.error;
  } catch {
    // A machine between us and Google answered.
  }
  const { message, status, errors, details } = (typeof error === 'object' && error !== null ? error : {}) as Record<
    string,
    unknown
  >;
  const reasons = [errors, details]
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .map((entry: { readonly reason?: unknown } | null) => errorNameOf(entry?.reason))
    .filter((reason) => reason !== '');
  return {
    message: typeof message === 'string' ? message : '',
    status: errorNameOf(status),
    reasons,
  };
}

/**
 * Seconds until a retry makes sense. Gmail writes the time into its message: `Retry after 2026-01-31T10:00:00.000Z`.
 */
function waitOf(headers: Headers, message: string, now: number): number | undefined {
  return retryAfterOf(headers) ?? secondsUntil(/retry after (\S+)/i.exec(message)?.[1] ?? '', now);
}
