import type {
  AbandonReply,
  BeginCommand,
  BeginReply,
  CompleteReply,
  HeldCommand,
  HeldReply,
  KeptResult,
} from '../core/claim.ts';
import { isHeadgateError, StoreUnavailableError } from '../core/errors.ts';
import { after, isPromise } from '../core/maybe-promise.ts';
import type { ClaimId, MaybePromise } from '../core/ports.ts';
import type { Engine } from './engine.ts';
import type { ClaimCommandName } from './events.ts';
import type { ClaimSettings } from './settings.ts';

/** The store could not be asked, or its answer was not heard. */
export interface Unavailable {
  readonly kind: 'unavailable';
  readonly error: unknown;
}

/** A claim that a `begin` made. */
export interface Begun extends Extract<BeginReply, { kind: 'claimed' }> {
  /** When that `begin` was sent. */
  readonly sentAt: number;
}

export type Beginning = Exclude<BeginReply, { kind: 'claimed' | 'late' }> | Begun | Unavailable;

/** A command that failed before its deadline is sent once more. */
const TRIES = 2;

/** One request at one gateway: its own token, and the commands that are sent with it (I9, I10). */
export class Attempt {
  readonly engine: Engine;
  readonly id: ClaimId;
  readonly settings: ClaimSettings;
  readonly fused: boolean;
  readonly fingerprint: string;
  readonly #token: string;

  /** @param fused whether the claim is marked as dispatched as soon as it is made */
  constructor(engine: Engine, id: ClaimId, fingerprint: string, settings: ClaimSettings, fused: boolean) {
    this.engine = engine;
    this.id = id;
    this.settings = settings;
    this.fused = fused;
    this.fingerprint = fingerprint;
    this.#token = engine.nextToken();
  }

  /** Without a reply, the claim that may have been made is given back in the background. Never rejects, nor throws. */
  begin(): MaybePromise<Beginning> {
    const { leaseMs, onOrphan, retentionMs } = this.settings;
    const { fingerprint, fused } = this;
    return this.#begin({ token: this.#token, fingerprint, retentionMs, leaseMs, onOrphan, dispatch: fused }, 1, false);
  }

  #begin(command: BeginCommand, tries: number, mayBeClaimed: boolean): MaybePromise<Beginning> {
    const sentAt = this.engine.timers.now();
    try {
      const reply = this.engine.store.begin(this.id, command);
      if (!isPromise(reply)) return this.#begun(command, tries, mayBeClaimed, sentAt, reply);
      return reply.then(
        (heard) => this.#begun(command, tries, mayBeClaimed, sentAt, heard),
        (error: unknown) => this.#notBegun(command, tries, mayBeClaimed || !isDefinite(error), error),
      );
    } catch (error) {
      return this.#notBegun(command, tries, mayBeClaimed || !isDefinite(error), error);
    }
  }

  #begun(
    command: BeginCommand,
    tries: number,
    mayBeClaimed: boolean,
    sentAt: number,
    reply: BeginReply,
  ): MaybePromise<Beginning> {
    if (reply.kind === 'claimed') {
      const { kind, generation, inherited, dispatched } = reply;
      return { kind, generation, inherited, dispatched, sentAt };
    }
    if (reply.kind !== 'late') return reply;
    return this.#notBegun(command, tries, mayBeClaimed, new StoreUnavailableError('the command came too late'));
  }

  #notBegun(command: BeginCommand, tries: number, mayBeClaimed: boolean, error: unknown): MaybePromise<Beginning> {
    if (tries < TRIES && isWorthATry(error)) return this.#begin(command, tries + 1, mayBeClaimed);
    if (mayBeClaimed) this.abandonLater(undefined, this.fused);
    return { kind: 'unavailable', error };
  }

  extend(generation: number): HeldReply | Promise<HeldReply> {
    return this.engine.store.extend(this.id, this.#held(generation));
  }

  /** Says `ok` only where it was heard while the lease ran. Without a reply, the claim is given back in the background. Never rejects. */
  async dispatch(generation: number): Promise<HeldReply | Unavailable> {
    const { engine, id, settings } = this;
    let error: unknown;
    for (let tries = 0; tries < TRIES; tries++) {
      const sentAt = engine.timers.now();
      try {
        const reply = await engine.store.dispatch(id, this.#held(generation));
        if (reply.kind !== 'ok' || engine.timers.now() - sentAt < settings.leaseMs) return reply;
        error = new StoreUnavailableError('the lease was over before the answer came');
      } catch (failure) {
        error = failure;
        if (!isWorthATry(failure)) break;
      }
    }
    this.abandonLater(generation, true);
    return { kind: 'unavailable', error };
  }

  /** @throws what the store throws: whether the outcome is kept is unknown then */
  complete(result: KeptResult): MaybePromise<CompleteReply> {
    const { engine, id, fingerprint } = this;
    const { retentionMs } = this.settings;
    const reply = engine.store.complete(id, { token: this.#token, fingerprint, retentionMs, result });
    return after(reply, (heard) => this.#completed(heard, result));
  }

  #completed(reply: CompleteReply, result: KeptResult): CompleteReply {
    const { engine, id } = this;
    if (engine.events.heard) {
      const { status, value } = result;
      if (reply.kind === 'ok') {
        engine.events.emit({ ...id, type: 'completed', status, valueKept: value !== undefined });
      } else if (reply.kind === 'superseded') engine.events.emit({ ...id, type: 'superseded' });
      else this.tellLost('complete');
    }
    engine.waiters.wake(id);
    return reply;
  }

  completeLater(result: KeptResult): void {
    const { engine, id, settings } = this;
    const kept = engine.background.roomFor(result.value) ? result : { status: result.status, value: undefined };
    engine.background.add({
      id,
      command: 'complete',
      until: engine.timers.now() + settings.retentionMs,
      size: kept.value?.length ?? 0,
      send: async () => void (await this.complete(kept)),
    });
  }

  /** @throws what the store throws: whether the claim was given back is unknown then */
  async abandon(generation: number | undefined): Promise<AbandonReply> {
    const { engine, id, fingerprint } = this;
    const { retentionMs } = this.settings;
    const reply = await engine.store.abandon(id, { token: this.#token, fingerprint, retentionMs, generation });
    if (reply.kind === 'released' && engine.events.heard) engine.events.emit({ ...id, type: 'released' });
    if (reply.kind === 'lost' && generation !== undefined) this.tellLost('abandon');
    engine.waiters.wake(id);
    return reply;
  }

  /** @param marked whether the claim may be marked; one that is not is free once its lease is over */
  abandonLater(generation: number | undefined, marked: boolean): void {
    const { engine, id, settings } = this;
    const matters = marked ? settings.retentionMs : 2 * settings.leaseMs;
    engine.background.add({
      id,
      command: 'abandon',
      until: engine.timers.now() + matters,
      size: 0,
      send: async () => void (await this.abandon(generation)),
    });
  }

  tellLost(command: ClaimCommandName): void {
    if (this.engine.events.heard) this.engine.events.emit({ ...this.id, type: 'lost', command });
  }

  tellUnavailable(command: ClaimCommandName, error: unknown): void {
    if (this.engine.events.heard) this.engine.events.emit({ ...this.id, type: 'unavailable', command, error });
  }

  #held(generation: number): HeldCommand {
    const { leaseMs, retentionMs } = this.settings;
    return { token: this.#token, fingerprint: this.fingerprint, retentionMs, generation, leaseMs };
  }
}

/** Not where the whole deadline of a command was waited for: its sender is to be answered within it. */
function isWorthATry(error: unknown): boolean {
  return !(isDefinite(error) || isHeadgateError(error, 'store_timeout'));
}

/** Whether the error says that nothing was done, and that nothing will be. */
function isDefinite(error: unknown): boolean {
  return isHeadgateError(error, 'store_full') || isHeadgateError(error, 'closed');
}
