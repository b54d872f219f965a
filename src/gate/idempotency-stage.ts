import type { KeptResult } from '../core/claim.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { describeDifference } from '../http/fingerprint/difference.ts';
import { hasLength, type Reply } from '../http/problem.ts';
import { forEachField } from '../http/raw-fields.ts';
import { decodeResponse, encodeResponse, type KeepField, storedFields } from '../http/stored-response.ts';
import type { Claim } from '../idempotency/claim.ts';
import type { KeyOpener } from '../idempotency/idempotency.ts';
import type { OpenedClaim } from '../idempotency/open.ts';
import type { Reconcile } from '../idempotency/reconcile.ts';
import type { Refused } from '../idempotency/refusal.ts';
import type { SettingsInput } from '../idempotency/settings.ts';
import type { GateReply } from './gate.ts';
import type { FingerprintedRequest } from './idempotent-request.ts';
import type { CapturedResponse, ResponseRecording } from './recording.ts';

/** Creates an error response for the current request. */
export type AnswerProblem = <Status extends ErrorStatus>(
  status: Status,
  type: ErrorType<Status>,
  detail: string,
  headers?: Reply['headers'],
) => GateReply;

/** Options of {@link IdempotencyStage}. */
export interface IdempotencyStageOptions {
  readonly idempotency: KeyOpener;
  /** Which header fields of a response are stored. Some fields are never stored (I4). */
  readonly keepsField?: KeepField | undefined;
  /** Whether a response with this status is stored as the outcome. If not, the key is released (I6). */
  readonly isOutcome: (status: number) => boolean;
}

const UNKNOWN_OUTCOME =
  'The outcome of the request with this idempotency key is unknown: it may have been executed. It will not be sent again.';
const NOT_STORED_YET = 'The outcome is not stored yet, and another outcome may replace it; retry with the same key.';
const UNKNOWN_COMMIT = 'It is unknown yet whether this request was executed; retry with the same key.';
const UNDONE = 'Nothing was done: the transaction of this request was rolled back; retry with the same key.';
const REFUSED_COMMIT = 'Nothing was done: the transaction of this request could not be committed.';
const BAD_RECONCILED = 'reconcile must return a result of storedResponse() from headgate/http';
/** Added to every replayed response. */
const REPLAYED_HEADERS = { 'Idempotency-Replayed': 'true' } as const;
/** The stage itself limits the length of the body, so the limit for the encoded value is disabled (I7). */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** Claims idempotency keys, replays stored responses and refuses duplicates. Reads and writes no HTTP. */
export class IdempotencyStage {
  constructor(private readonly options: IdempotencyStageOptions) {}

  open(request: FingerprintedRequest): Promise<OpenedClaim> {
    const { fingerprint, reconcile, dispatch: _, maxKeptBytes: __, ...others } = request;
    return this.options.idempotency.open({
      // The limits come between the claim and its dispatch.
      dispatch: 'explicit',
      fingerprint: fingerprint.value,
      reconcile: reconcile && this.#recordReconciled(reconcile, this.#maxBytes(request)),
      maxKeptBytes: UNLIMITED,
      ...others,
    });
  }

  /** Returns the stored response, or an error response if it was not stored (I7). */
  replay({ status, value }: KeptResult, answer: AnswerProblem): GateReply {
    const stored = value === undefined ? undefined : decodeResponse(value);
    if (stored === undefined) return answer(409, 'errors/already_used', notStoredDetail(status));
    const headers: Record<string, string | string[]> = {};
    forEachField(stored.fields, (name, value) => addHeader(headers, name, value));
    const length = hasLength(stored.status) ? { 'content-length': String(stored.body.length) } : {};
    return { status: stored.status, headers: Object.assign(headers, length, REPLAYED_HEADERS), body: stored.body };
  }

  refuse(refused: Refused, { fingerprint }: FingerprintedRequest, answer: AnswerProblem): GateReply {
    switch (refused.reason) {
      case 'mismatch': {
        const difference = describeDifference(refused.fingerprint, fingerprint) ?? 'the request differs';
        const detail = `This idempotency key belongs to another request: ${difference}. Use a new key for a new request.`;
        return answer(409, 'errors/already_used', detail);
      }
      case 'not_kept':
        return answer(409, 'errors/already_used', notStoredDetail(refused.status));
      case 'orphan':
        return answer(409, 'errors/conflict', UNKNOWN_OUTCOME);
      case 'in_progress': {
        const seconds = Math.max(1, Math.ceil(refused.retryAfterMs / 1_000));
        const detail = `The request with this idempotency key is still running; retry with the same key in ${seconds} s.`;
        return answer(409, 'errors/conflict', detail, { 'retry-after': String(seconds) });
      }
      case 'too_many_keys': {
        const seconds = Math.max(1, Math.ceil(refused.retryAfterMs / 1_000));
        const detail = `This application has too many idempotency keys in use; nothing was done. Its next key has room in about ${seconds} s.`;
        return answer(429, 'api/too_many_requests', detail, { 'retry-after': String(seconds) });
      }
      case 'lost':
      case 'aborted':
        return answer(409, 'errors/conflict', 'Nothing was done for this attempt; retry with the same key.', {
          'retry-after': '1',
        });
    }
  }

  /** Releases the key. If another owner's outcome is already stored, returns that: the client must get it instead. */
  async release(claim: Claim, answer: AnswerProblem): Promise<GateReply | undefined> {
    const release = await claim.abandon();
    return release.kind === 'settled' ? this.replay(release.result, answer) : undefined;
  }

  /** Returns the recording that completes the claim with the response. */
  recording(claim: Claim, request: FingerprintedRequest, answer: AnswerProblem): Omit<ResponseRecording, 'fail'> {
    const defaults = this.options.idempotency.settings;
    const { onOrphan = defaults.onOrphan, dispatch } = request;
    const maxBytes = this.#maxBytes(request);
    return {
      claim,
      maxBytes,
      // In each case another response can replace this one.
      storeBeforeSending: onOrphan !== 'reject' || dispatch === 'explicit' || claim.transaction !== undefined,
      store: (response) => this.#store(claim, response, maxBytes, answer),
    };
  }

  async #store(
    claim: Claim,
    response: CapturedResponse,
    maxBytes: number,
    answer: AnswerProblem,
  ): Promise<Reply | undefined> {
    const { status } = response;
    const isInTransaction = claim.transaction !== undefined;
    // An error of the handler rolls its transaction back. A success is never answered without its transaction.
    const isReleased = isInTransaction
      ? status >= 500 || (status >= 400 && !this.options.isOutcome(status))
      : !this.options.isOutcome(status);
    if (isReleased) return this.release(claim, answer);
    const completion = await claim.complete(this.#resultOf(response, maxBytes));
    switch (completion.kind) {
      case 'superseded':
        return this.replay(completion.result, answer);
      case 'undone':
        return completion.isRefused
          ? answer(500, 'errors/unexpected_error', REFUSED_COMMIT)
          : answer(503, 'errors/service_unavailable', UNDONE, { 'retry-after': '1' });
      case 'pending': {
        if (completion.answer === 'own') return undefined;
        const detail = isInTransaction ? UNKNOWN_COMMIT : NOT_STORED_YET;
        return answer(503, 'errors/service_unavailable', detail, { 'retry-after': '1' });
      }
      case 'lost':
        return isInTransaction ? answer(500, 'errors/unexpected_error', REFUSED_COMMIT) : undefined;
      case 'kept':
        return undefined;
    }
  }

  #maxBytes({ maxKeptBytes = this.options.idempotency.settings.maxKeptBytes }: SettingsInput): number {
    return maxKeptBytes;
  }

  /** A response as it is stored: with the fields that are stored, and without its body if that is too long (I4, I7). */
  #resultOf({ status, fields, body }: CapturedResponse, maxBytes: number): KeptResult {
    const value =
      body === undefined || body.length > maxBytes
        ? undefined
        : encodeResponse({ status, fields: storedFields(fields, this.options.keepsField), body });
    return { status: String(status), value };
  }

  /** Stores a response that the callback returns by the same rules as a response of the handler. */
  #recordReconciled(reconcile: Reconcile<KeptResult>, maxBytes: number): Reconcile<KeptResult> {
    return async (about) => {
      const answer = await reconcile(about);
      if (typeof answer !== 'object' || answer?.done !== true || answer.result === undefined) return answer;
      const { status, value } = Object(answer.result) as Partial<KeptResult>;
      const response = typeof value === 'string' ? decodeResponse(value) : undefined;
      const { note } = answer;
      if (response !== undefined) return { done: true, result: this.#resultOf(response, maxBytes), note };
      // An outcome of which only the status is known.
      if (typeof status === 'string' && value === undefined) return { done: true, result: { status, value }, note };
      // No retry could replay any other value. An error counts as `unknown`, so nothing is stored.
      throw new TypeError(BAD_RECONCILED);
    };
  }
}

function notStoredDetail(status: string): string {
  return `The request with this idempotency key was completed with status ${status}, but its response was not stored. It will not be sent again.`;
}

/** The values of a repeated name become a list. `defineProperty` makes even `__proto__` an ordinary name. */
function addHeader(headers: Record<string, string | string[]>, name: string, value: string): void {
  const known = Object.keys(headers).find((other) => other.toLowerCase() === name.toLowerCase());
  if (known === undefined)
    Object.defineProperty(headers, name, { value, enumerable: true, writable: true, configurable: true });
  else headers[known] = [headers[known] as string | string[], value].flat();
}
