import { type HeadgateErrorCode, isHeadgateError, StoreUnavailableError } from '../base/errors.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type {
  AbandonReply,
  BeginCommand,
  BeginReply,
  CompleteReply,
  HeldCommand,
  HeldReply,
  KeptResult,
} from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import type { ClaimEvent } from './events.ts';
import type { Unavailable } from './refusal.ts';
import type { Runtime } from './runtime.ts';
import type { ClaimSettings } from './settings.ts';

/** The claim that a `begin` command made. */
export interface NewClaim extends Extract<BeginReply, { kind: 'claimed' }> {
  /** When that command was sent, by the clock of the runtime. */
  readonly sentAt: number;
}

export type BeginResult = Exclude<BeginReply, { kind: 'claimed' | 'late' }> | NewClaim | Unavailable;

/** A command that fails before its deadline is sent once more. */
const MAX_TRIES = 2;
/** A command waits in memory for its store for a day at most, however long outcomes are stored. */
const MAX_BACKGROUND_MS = 86_400_000;

/** One request in one process. It owns a token, and sends the commands that carry this token (I9, I10). */
export class Attempt {
  readonly #token: string;

  /** @param dispatchOnClaim whether `begin` also records the dispatch, which saves a command */
  constructor(
    readonly runtime: Runtime,
    readonly id: ClaimId,
    readonly fingerprint: string,
    readonly settings: ClaimSettings,
    readonly dispatchOnClaim: boolean,
  ) {
    this.#token = runtime.nextToken();
  }

  emit(event: ClaimEvent): void {
    this.runtime.emit(this.id, event);
  }

  /** Without a reply, a claim may have been made: it is released in the background. Never throws or rejects. */
  begin(): MaybePromise<BeginResult> {
    const { leaseMs, onOrphan, retentionMs } = this.settings;
    const { fingerprint, dispatchOnClaim: dispatch } = this;
    return this.#sendBegin({ token: this.#token, fingerprint, retentionMs, leaseMs, onOrphan, dispatch }, 1, false);
  }

  #sendBegin(command: BeginCommand, tries: number, mayBeClaimed: boolean): MaybePromise<BeginResult> {
    const { store, timers } = this.runtime;
    const sentAt = timers.now();
    const onReply = (reply: BeginReply): MaybePromise<BeginResult> => {
      if (reply.kind === 'late')
        return onFailure(new StoreUnavailableError('the command arrived after its deadline'), mayBeClaimed);
      if (reply.kind !== 'claimed') return reply;
      const { kind, generation, inherited, dispatched } = reply;
      return { kind, generation, inherited, dispatched, sentAt };
    };
    const onError = (error: unknown): MaybePromise<BeginResult> => onFailure(error, mayBeClaimed || !didNothing(error));
    const onFailure = (error: unknown, isClaimPossible: boolean): MaybePromise<BeginResult> => {
      if (tries < MAX_TRIES && isWorthRetrying(error)) return this.#sendBegin(command, tries + 1, isClaimPossible);
      if (isClaimPossible) this.abandonInBackground(undefined, this.dispatchOnClaim);
      return { kind: 'unavailable', error };
    };
    try {
      const reply = store.begin(this.id, command);
      return isPromise(reply) ? reply.then(onReply, onError) : onReply(reply);
    } catch (error) {
      return onError(error);
    }
  }

  extend(generation: number): HeldReply | Promise<HeldReply> {
    return this.runtime.store.extend(this.id, this.#ownerCommand(generation));
  }

  /** The claim is an orphan from now on: no retry waits for the lease. @throws the store's errors */
  async endLease(generation: number): Promise<void> {
    await this.runtime.store.extend(this.id, this.#ownerCommand(generation, undefined, 1));
    this.runtime.waiters.wake(this.id);
  }

  /**
   * `ok` only if the reply arrived within the lease. Without a reply, releases in the background. Never rejects.
   * @param note as JSON, like `undoNote`, which a release in the background carries
   */
  async dispatch(generation: number, note?: string, undoNote?: string): Promise<HeldReply | Unavailable> {
    const { runtime, id, settings } = this;
    let error: unknown;
    let mayBeDispatched = false;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const sentAt = runtime.timers.now();
      try {
        const reply = await runtime.store.dispatch(id, this.#ownerCommand(generation, note));
        if (reply.kind !== 'ok' || runtime.timers.now() - sentAt < settings.leaseMs) return reply;
        error = new StoreUnavailableError('the lease expired before the reply arrived');
        mayBeDispatched = true;
      } catch (failure) {
        error = failure;
        // Another attempt completed the claim: there is nothing to release.
        if (isHeadgateError(failure, 'result_unavailable')) return { kind: 'unavailable', error };
        mayBeDispatched ||= !didNothing(failure);
        if (!isWorthRetrying(failure)) break;
      }
    }
    // The claim itself was made by `begin`, so it is released even if no dispatch was sent.
    this.abandonInBackground(generation, mayBeDispatched, mayBeDispatched ? undoNote : undefined);
    return { kind: 'unavailable', error };
  }

  /** @throws the store's errors; whether the outcome is stored is unknown then */
  complete(result: KeptResult, note?: string): MaybePromise<CompleteReply> {
    const { runtime, id, fingerprint } = this;
    const { retentionMs } = this.settings;
    const reply = runtime.store.complete(id, { token: this.#token, fingerprint, retentionMs, result, note });
    return after(reply, (received) => this.#onCompleteReply(received, result));
  }

  #onCompleteReply(reply: CompleteReply, { status, value }: KeptResult): CompleteReply {
    if (reply.kind === 'ok')
      this.emit({ type: 'completed', status, valueKept: value !== undefined && reply.valueDropped !== true });
    else this.emit(reply.kind === 'superseded' ? { type: 'superseded' } : { type: 'lost', command: 'complete' });
    this.runtime.waiters.wake(this.id);
    return reply;
  }

  completeInBackground(result: KeptResult, note?: string): void {
    const { runtime, id, settings } = this;
    const noteLength = note?.length ?? 0;
    const valueLength = result.value?.length ?? 0;
    const hasRoom = runtime.retries.hasRoomFor(id.scope, valueLength + noteLength);
    const stored = hasRoom ? result : { status: result.status, value: undefined };
    runtime.retries.add({
      id,
      command: 'complete',
      expiresAt: runtime.timers.now() + Math.min(settings.retentionMs, MAX_BACKGROUND_MS),
      valueLength: hasRoom ? valueLength : 0,
      noteLength,
      send: async () => void (await this.complete(stored, note)),
    });
  }

  /** @throws the store's errors; whether the claim was released is unknown then */
  async abandon(generation: number | undefined, note?: string): Promise<AbandonReply> {
    const { runtime, id, fingerprint } = this;
    const { retentionMs, releasedRetentionMs } = this.settings;
    const command = { token: this.#token, fingerprint, retentionMs, releasedRetentionMs, generation, note };
    const reply = await runtime.store.abandon(id, command);
    if (reply.kind === 'released') this.emit({ type: 'released' });
    if (reply.kind === 'lost' && generation !== undefined) this.emit({ type: 'lost', command: 'abandon' });
    runtime.waiters.wake(id);
    return reply;
  }

  /** @param mayBeDispatched whether a dispatch may be recorded; if not, the claim is free when its lease expires */
  abandonInBackground(generation: number | undefined, mayBeDispatched: boolean, note?: string): void {
    const { runtime, id, settings } = this;
    const usefulMs = mayBeDispatched ? Math.min(settings.retentionMs, MAX_BACKGROUND_MS) : 2 * settings.leaseMs;
    runtime.retries.add({
      id,
      command: 'abandon',
      expiresAt: runtime.timers.now() + usefulMs,
      valueLength: 0,
      noteLength: note?.length ?? 0,
      send: async () => void (await this.abandon(generation, note)),
    });
  }

  #ownerCommand(generation: number, note?: string, leaseMs = this.settings.leaseMs): HeldCommand {
    const { retentionMs } = this.settings;
    return { token: this.#token, fingerprint: this.fingerprint, retentionMs, generation, leaseMs, note };
  }
}

/** False after a timeout: the caller must get its answer within one deadline. */
function isWorthRetrying(error: unknown): boolean {
  return !(didNothing(error) || isHeadgateError(error, 'store_timeout'));
}

/** Whether the error guarantees that the command changed nothing in the store and will not change anything. */
function didNothing(error: unknown): boolean {
  return (
    ['store_full', 'scope_full', 'store_setup', 'closed', 'result_unavailable', 'rows_failed'].some((code) =>
      isHeadgateError(error, code as HeadgateErrorCode),
    ) ||
    (isHeadgateError(error, 'store_unavailable') && (error as StoreUnavailableError).sent === false)
  );
}
