import { OptionError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import type { ErrorType } from '../http/error-types.ts';

/** The gate's answer to a request whose account is undefined. */
export type OnNoAccount = 'reject' | 'pass' | NoAccountAnswer;

/** The answer to a request without an account. */
export interface NoAccountAnswer {
  /** 401 gets the type `errors/missing_credentials`, 403 the type `errors/resource_access_restricted`. */
  readonly status: 401 | 403;
  /** Advice for the client. By default a sentence that fits any API. */
  readonly detail?: string | undefined;
}

/** The answer of {@link noAccountRefusal}, ready to send. */
export type NoAccountRefusal =
  | { readonly status: 401; readonly type: ErrorType<401>; readonly detail: string }
  | { readonly status: 403; readonly type: ErrorType<403>; readonly detail: string };

const BAD = "must be 'reject', 'pass', { status: 401 } or { status: 403 }";
const MISSING = 'The request does not say which account it is for: send the credentials or the field that names it.';
const RESTRICTED = 'These credentials belong to no account: use those of an account.';

/**
 * The answer to a request without an account; undefined if such a request passes.
 * @throws OptionError
 */
export function noAccountRefusal(given: OnNoAccount = 'reject'): NoAccountRefusal | undefined {
  if (given === 'pass') return undefined;
  if (typeof given === 'object' && given !== null) checkOptions(given, ['status', 'detail'], 'onNoAccount');
  const { status, detail } = given === 'reject' ? { status: 401, detail: undefined } : Object(given);
  if (status !== 401 && status !== 403) throw new OptionError('onNoAccount', given, BAD);
  if (detail !== undefined && (typeof detail !== 'string' || detail === ''))
    throw new OptionError('onNoAccount.detail', detail, 'must be a text that is not empty');
  return status === 401
    ? { status, type: 'errors/missing_credentials', detail: detail ?? MISSING }
    : { status, type: 'errors/resource_access_restricted', detail: detail ?? RESTRICTED };
}
