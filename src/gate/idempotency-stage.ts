import type { KeptResult } from '../core/claim.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { ErrorStatus, ErrorType } from '../http/error-types.ts';
import { describeDifference } from '../http/fingerprint/difference.ts';
import type { Fingerprint } from '../http/fingerprint/fingerprint.ts';
import type { Reply } from '../http/problem.ts';
import { decodeResponse, encodeResponse, type KeepField, storedFields } from '../http/stored-response.ts';
import type {
  Claim,
  Idempotency,
  Opened,
  Reconcile,
  Refused,
  Release,
  SettingsInput,
} from '../idempotency/idempotency.ts';
import type { CapturedResponse, Recording } from './recording.ts';

/** What makes a request idempotent: its key, and what it is the key of. */
export interface IdempotentRequest extends SettingsInput {
  /** The caller's application: keys of two never meet (I2). */
  readonly scope: string;
  /** As the client gave it (I1). */
  readonly key: string;
  /**
   * Of the whole request, as `fingerprint()` of `headgate/http` makes it (I3). A function is called with what the gate's `account` says. One that is
   * given without knowing the account lets another account's request pass for the same, where nothing else of the two differs (I2).
   */
  readonly fingerprint: Fingerprint | ((account: string | undefined) => MaybePromise<Fingerprint>);
  /** Needed where `onOrphan` is `reconcile`. */
  readonly reconcile?: Reconcile<KeptResult> | undefined;
  /** The client is gone: ends its waiting for an original. */
  readonly signal?: AbortSignal | undefined;
}

/** One whose fingerprint is made. */
export interface PrintedRequest extends IdempotentRequest {
  readonly fingerprint: Fingerprint;
}

/** Makes an error answer. */
export type AnswerProblem = <Status extends ErrorStatus>(
  status: Status,
  type: ErrorType<Status>,
  detail: string,
  headers?: Reply['headers'],
) => Reply;

/** Options of {@link IdempotencyStage}. */
export interface IdempotencyStageOptions {
  readonly idempotency: Idempotency;
  /** Which fields of an answer are stored, beside those that never are (I4). */
  readonly keepsField?: KeepField | undefined;
  /** Whether an answer of this status is the outcome, or says that nothing was done, so that the key is given back (I6). */
  readonly isOutcome: (status: number) => boolean;
}

/** What stands on an answer that was given before. */
const REPLAYED = { 'Idempotency-Replayed': 'true' } as const;
/** The larger value is refused by the length of its body, which is what the bound is of (I7). */
const NO_BOUND = Number.MAX_SAFE_INTEGER;

/** The stage of the gate that claims, replays and refuses by idempotency key. Decides what becomes of a claim; reads and writes no HTTP. */
export class IdempotencyStage {
  readonly #options: IdempotencyStageOptions;

  constructor(options: IdempotencyStageOptions) {
    this.#options = options;
  }

  open({ scope, key, fingerprint, reconcile, signal, ...settings }: PrintedRequest): Promise<Opened> {
    const { value } = fingerprint;
    return this.#options.idempotency.open({
      ...settings,
      scope,
      key,
      fingerprint: value,
      reconcile,
      signal,
      maxKeptBytes: NO_BOUND,
      dispatch: 'explicit',
    });
  }

  /** The kept answer, or what is said where it was not kept (I7). */
  replay({ status, value }: KeptResult, answer: AnswerProblem): Reply {
    const kept = value === undefined ? undefined : decodeResponse(value);
    if (kept === undefined) return answer(409, 'errors/already_used', notKept(status));
    const headers: Record<string, string | string[]> = {};
    for (let i = 0; i < kept.fields.length; i += 2)
      add(headers, kept.fields[i] as string, kept.fields[i + 1] as string);
    const length = isBodyless(kept.status) ? {} : { 'content-length': String(kept.body.length) };
    return { status: kept.status, headers: { ...headers, ...length, ...REPLAYED }, body: kept.body };
  }

  refuse(refused: Refused, { fingerprint }: PrintedRequest, answer: AnswerProblem): Reply {
    switch (refused.reason) {
      case 'mismatch': {
        const difference = describeDifference(refused.fingerprint, fingerprint) ?? 'the request differs';
        const detail = `This idempotency key belongs to another request: ${difference}. A new request needs a new key.`;
        return answer(409, 'errors/already_used', detail);
      }
      case 'not_kept':
        return answer(409, 'errors/already_used', notKept(refused.status));
      case 'orphan':
        return answer(
          409,
          'errors/conflict',
          'The outcome of the request with this idempotency key is unknown: it may have been carried out. It is not sent again.',
        );
      case 'in_progress': {
        const seconds = Math.max(1, Math.ceil(refused.retryAfterMs / 1_000));
        const detail = `The request with this idempotency key is still running; retry with the same key in ${seconds} s.`;
        return answer(409, 'errors/conflict', detail, { 'retry-after': String(seconds) });
      }
      case 'lost':
      case 'aborted':
        return answer(409, 'errors/conflict', 'Nothing was done for this attempt; retry with the same key.', {
          'retry-after': '1',
        });
    }
  }

  /** @returns what is to be answered instead: somebody else's outcome came first */
  async release(claim: Claim, answer: AnswerProblem): Promise<Reply | undefined> {
    const release: Release = await claim.abandon();
    return release.kind === 'settled' ? this.replay(release.result, answer) : undefined;
  }

  recording(claim: Claim, settings: SettingsInput, answer: AnswerProblem): Recording {
    const defaults = this.#options.idempotency.settings;
    const { maxKeptBytes = defaults.maxKeptBytes, onOrphan = defaults.onOrphan } = settings;
    return {
      maxBytes: maxKeptBytes,
      storeBeforeSending: onOrphan !== 'reject',
      store: (response) => this.#keep(claim, response, maxKeptBytes, answer),
    };
  }

  async #keep(
    claim: Claim,
    { status, fields, body }: CapturedResponse,
    maxBytes: number,
    answer: AnswerProblem,
  ): Promise<Reply | undefined> {
    const { isOutcome, keepsField } = this.#options;
    if (!isOutcome(status)) return this.release(claim, answer);
    const value =
      body === undefined || body.length > maxBytes
        ? undefined
        : encodeResponse({ status, fields: storedFields(fields, keepsField), body });
    const completion = await claim.complete({ status: String(status), value });
    if (completion.kind === 'superseded') return this.replay(completion.result, answer);
    if (completion.kind === 'pending' && completion.answer === 'unavailable') {
      const detail = 'The outcome could not be stored yet, and another one may win; retry with the same key.';
      return answer(503, 'errors/service_unavailable', detail);
    }
    return undefined;
  }
}

function notKept(status: string): string {
  return `The request with this idempotency key was completed with status ${status}, but its answer was not kept. It is not sent again.`;
}

function isBodyless(status: number): boolean {
  return status === 204 || status === 304;
}

/** A name that comes again becomes a list; no name means anything to the object. */
function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  const known = Object.keys(headers).find((other) => other.toLowerCase() === name.toLowerCase());
  if (known === undefined)
    Object.defineProperty(headers, name, { value, enumerable: true, writable: true, configurable: true });
  else headers[known] = [headers[known] as string | string[], value].flat();
}
