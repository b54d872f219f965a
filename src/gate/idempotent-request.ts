import { OptionError } from '../core/errors.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { IdempotentRequest, PrintedRequest } from './idempotency-stage.ts';
import { StageError } from './resolve.ts';

const NO_ACCOUNT = 'the resolver gives a string, or undefined for a request that is not limited';
const NO_FINGERPRINT = 'fingerprint gives what fingerprint() of headgate/http makes';
const NO_IDEMPOTENT_REQUEST =
  "the gate's idempotent resolver gives undefined, or { scope, key, fingerprint } with a scope that is not empty";

/** Whether the resolver found a key that cannot be taken (I1). */
export function isKeyFault(found: unknown): found is KeyFault {
  return typeof (found as Partial<KeyFault> | null)?.detail === 'string';
}

/**
 * What the resolver is to give: nothing of a claim may rest on a guess, least of all whose key it is (I2).
 * @throws StageError
 */
export function checkIdempotentRequest(found: unknown): IdempotentRequest {
  const { scope, key, fingerprint } = Object(found) as Partial<IdempotentRequest>;
  const isPrinted = typeof fingerprint === 'function' || typeof fingerprint?.value === 'string';
  if (typeof scope === 'string' && scope !== '' && typeof key === 'string' && isPrinted)
    return found as IdempotentRequest;
  throw new StageError('idempotent', new TypeError(NO_IDEMPOTENT_REQUEST));
}

/**
 * With the fingerprint that the request has for this account.
 * @throws StageError
 */
export async function printed(found: IdempotentRequest, account: string | undefined): Promise<PrintedRequest> {
  const { scope, key, fingerprint } = found;
  if (account !== undefined && typeof account !== 'string')
    throw new StageError('account', new OptionError('account', account, NO_ACCOUNT));
  try {
    const made = typeof fingerprint === 'function' ? await fingerprint(account) : fingerprint;
    if (typeof made?.value !== 'string') throw new TypeError(NO_FINGERPRINT);
    return { ...found, scope, key, fingerprint: made };
  } catch (error) {
    throw new StageError('idempotent', error);
  }
}
