import { OptionError } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { KeptResult } from '../core/claim.ts';
import type { Fingerprint } from '../http/fingerprint/fingerprint.ts';
import type { KeyFault } from '../http/idempotency-key.ts';
import type { Reconcile } from '../idempotency/reconcile.ts';
import type { SettingsInput } from '../idempotency/settings.ts';
import { StageError } from './resolver.ts';

/** A request with an idempotency key: the key, its scope and the fingerprint of the request. */
export interface IdempotentRequest extends SettingsInput {
  /** The client application that the key belongs to: keys of two applications are different keys (I2). Not empty. */
  readonly scope: string;
  /** The key as the client sent it (I1). */
  readonly key: string;
  /**
   * Fingerprint of the whole request, made by `fingerprint()` of `headgate/http` (I3). A function is called with the
   * result of the gate's `account` resolver. A fingerprint that does not include the account cannot distinguish two
   * accounts if their requests are otherwise equal (I2).
   */
  readonly fingerprint: Fingerprint | ((account: string | undefined) => MaybePromise<Fingerprint>);
  /**
   * `automatic`: the handler runs with a claim that is dispatched, so its death leaves an unknown outcome. `explicit`: the
   * handler calls `dispatch()` of its passage just before its effect. Until then its death, or an error that it answers,
   * frees the key.
   * @default 'automatic'
   */
  readonly dispatch?: 'automatic' | 'explicit' | undefined;
  /**
   * Required if `onOrphan` is `reconcile`. If the operation was done, `result` must be made by `storedResponse()` of
   * `headgate/http`: the client gets that response. `{ status, value: undefined }` if only the status is known.
   */
  readonly reconcile?: Reconcile<KeptResult> | undefined;
  /** Aborted when the client disconnects: ends the wait for an original. */
  readonly signal?: AbortSignal | undefined;
}

/** An idempotent request whose fingerprint is computed. */
export interface FingerprintedRequest extends IdempotentRequest {
  readonly fingerprint: Fingerprint;
}

const BAD_ACCOUNT = 'must resolve to a string; return undefined if there is none';
const BAD_FINGERPRINT = 'fingerprint must be a result of fingerprint() from headgate/http';
const BAD_IDEMPOTENT_REQUEST =
  "the gate's idempotent resolver must return undefined, or { scope, key, fingerprint } with a non-empty scope";
/** The values of {@link IdempotentRequest.dispatch}. */
export const DISPATCHES: readonly unknown[] = ['automatic', 'explicit'];

/** Whether the resolver found an invalid key (I1). */
export function isKeyFault(resolved: unknown): resolved is KeyFault {
  return typeof (resolved as Partial<KeyFault> | null)?.detail === 'string';
}

/**
 * Checks the resolver's result: a claim must never rest on a guess, least of all about the scope of its key (I2).
 * @throws StageError
 */
export function checkIdempotentRequest(resolved: unknown): IdempotentRequest {
  const { scope, key, fingerprint, dispatch = 'automatic' } = Object(resolved) as Partial<IdempotentRequest>;
  if (!DISPATCHES.includes(dispatch))
    throw new StageError(
      'idempotent',
      new OptionError('dispatch', dispatch, `must be one of ${DISPATCHES.join(', ')}`),
    );
  const hasFingerprint = typeof fingerprint === 'function' || typeof fingerprint?.value === 'string';
  if (typeof scope === 'string' && scope !== '' && typeof key === 'string' && hasFingerprint)
    return resolved as IdempotentRequest;
  throw new StageError('idempotent', new TypeError(BAD_IDEMPOTENT_REQUEST));
}

/** The error for an account that is neither a string nor undefined. */
export function badAccount(account: unknown): StageError {
  return new StageError('account', new OptionError('account', account, BAD_ACCOUNT));
}

/**
 * Computes the fingerprint for this account, if it is a function.
 * @throws StageError
 */
export async function withFingerprint(
  request: IdempotentRequest,
  account: string | undefined,
): Promise<FingerprintedRequest> {
  const { scope, key, fingerprint, ...others } = request;
  if (account !== undefined && typeof account !== 'string') throw badAccount(account);
  try {
    const computed = typeof fingerprint === 'function' ? await fingerprint(account) : fingerprint;
    if (typeof computed?.value !== 'string') throw new TypeError(BAD_FINGERPRINT);
    return { scope, key, fingerprint: computed, ...others };
  } catch (error) {
    throw new StageError('idempotent', error);
  }
}
