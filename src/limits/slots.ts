import { builtinModule } from '../base/builtin-module.ts';
import { Emitter } from '../base/emitter.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkFunctions, checkInteger, checkMethods, checkOptions } from '../base/options.ts';
import { IN_FLIGHT_CHANNEL, type InFlightEvent } from '../core/in-flight-channel.ts';
import type { LimitStore } from '../core/ports.ts';
import { type InFlight, LONGEST_SLOT_LEASE_MS, type Slot, type SlotReply } from '../core/slot.ts';
import { createSystemTimers, type Timers } from '../core/timers.ts';
import { base64url } from '../http/platform.ts';

/** How a limiter holds the slots of requests in flight (S29). */
export interface InFlightOptions {
  /**
   * How long a slot lasts after its process died, in milliseconds, from 1,000 to 3,600,000. A living process renews its
   * slots after a third of it.
   * @default 60_000
   */
  readonly leaseMs?: number | undefined;
  /**
   * How long a slot lasts if its request never ends, in milliseconds, at most 24 hours: then it counts no more, and an
   * event says so.
   * @default 3_600_000
   */
  readonly maxRunMs?: number | undefined;
  /** Is called with every event. Its errors are logged, and change nothing. */
  readonly onEvent?: ((event: InFlightEvent) => void) | undefined;
}

/** The part of a store that counts requests in flight. */
type SlotStore = Required<Pick<LimitStore, 'holdSlot' | 'releaseSlot'>> & Pick<LimitStore, 'synchronous'>;

/** The result of taking a slot. */
export interface TakenSlot {
  readonly reply: SlotReply;
  /** Undefined if there was no room. */
  readonly slot: HeldSlot | undefined;
}

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

const TOKEN_BYTES = 12;
/** The lease is renewed after a third of it, and after a twelfth if the last renewal failed. */
const RENEWALS_PER_LEASE = 3;
const RETRIES_PER_LEASE = 12;
/** So many rejections before the first release are probably a mistake. */
const UNRELEASED_REJECTIONS = 10;
const CANNOT = ': this store cannot count requests in flight (inFlight)';

/** Takes, renews and releases the slots of one process in a store. */
export class Slots {
  readonly store: SlotStore;
  readonly timers: Timers;
  readonly leaseMs: number;
  readonly maxRunMs: number;
  readonly #emitter: Emitter<InFlightEvent>;
  readonly #channel = builtinModule<{ channel(name: string): Channel }>('node:diagnostics_channel')?.channel(
    IN_FLIGHT_CHANNEL,
  );
  readonly #held = new Set<HeldSlot>();
  readonly #listeners = new Set<(account: string) => void>();
  /** Begins the tokens of this process. Made on the first use: Workers have no random values before. */
  #process: string | undefined;
  #count = 0;
  /** Rejections before the first release. */
  #unreleased = 0;
  #hasReleased = false;

  /** @throws OptionError */
  constructor(
    store: LimitStore,
    options: InFlightOptions = {},
    logger?: Logger | false,
    timers: Timers = createSystemTimers(),
  ) {
    checkOptions(options, ['leaseMs', 'maxRunMs', 'onEvent'], 'inFlight');
    const { leaseMs = 60_000, maxRunMs = 3_600_000, onEvent } = options;
    checkInteger('inFlight.leaseMs', leaseMs, 1_000, 3_600_000);
    checkInteger('inFlight.maxRunMs', maxRunMs, 1_000, LONGEST_SLOT_LEASE_MS);
    checkFunctions(options, ['onEvent']);
    checkMethods('store', store, ['holdSlot', 'releaseSlot'], CANNOT);
    this.store = store as SlotStore;
    this.timers = timers;
    // If this process dies, a synchronous store dies with it, so its slots need no renewal.
    this.leaseMs = store.synchronous ? maxRunMs : leaseMs;
    this.maxRunMs = maxRunMs;
    this.#emitter = new Emitter(onEvent, createLogger(logger), 'inFlight.onEvent');
  }

  /** Called once if requests are rejected, and none was ever released. */
  onNeverReleased: ((held: number) => void) | undefined;

  /** Slots that this process holds. */
  get size(): number {
    return this.#held.size;
  }

  /** Calls the listener with the account of each slot that is released. Returns a function that stops this. */
  onRelease(listener: (account: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @throws the store's errors */
  take(account: string, route: string, most: InFlight): MaybePromise<TakenSlot> {
    const slot: Slot = { account, route, token: this.#nextToken(), most };
    const sentAt = this.timers.now();
    const taken = (reply: SlotReply): TakenSlot => {
      if (reply.held) return { reply, slot: new HeldSlot(this, slot, sentAt) };
      if (reply.degraded) this.#forget(slot);
      if (!this.#hasReleased && this.size > 0 && ++this.#unreleased === UNRELEASED_REJECTIONS)
        this.onNeverReleased?.(this.size);
      return { reply, slot: undefined };
    };
    const reply = this.store.holdSlot(slot, this.leaseMs);
    if (!isPromise(reply)) return taken(reply);
    return reply.then(taken, (error: unknown) => {
      this.#forget(slot);
      throw error;
    });
  }

  /** How many requests are in flight now. Takes no slot. */
  async count(account: string, route: string, most: InFlight): Promise<SlotReply> {
    const counted = { route: most.route && 0, allMethods: most.allMethods && 0 };
    return this.store.holdSlot({ account, route, token: this.#nextToken(), most: counted }, 1);
  }

  added(slot: HeldSlot): void {
    this.#held.add(slot);
  }

  released(slot: HeldSlot): void {
    this.#held.delete(slot);
    this.#hasReleased = true;
    for (const listener of this.#listeners) listener(slot.account);
  }

  emit(type: InFlightEvent['type'], { account, route }: Slot): void {
    const event = { type, account, route };
    if (this.#channel?.hasSubscribers) this.#channel.publish(event);
    this.#emitter.emit(event);
  }

  /** Releases a slot that the store may have granted although its answer did not come. Else its lease ends it. */
  #forget(slot: Slot): void {
    try {
      const released = this.store.releaseSlot(slot);
      if (isPromise(released)) released.catch(() => {});
    } catch {
      // A synchronous store that fails granted nothing.
    }
  }

  #nextToken(): string {
    this.#process ??= base64url(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)));
    return `${this.#process}.${(this.#count++).toString(36)}`;
  }
}

/** The slot of one request, which is renewed until it is released. */
export class HeldSlot {
  readonly #slots: Slots;
  readonly #slot: Slot;
  readonly #takenAt: number;
  /** When the last successful renewal was sent. */
  #renewedAt: number;
  /** Whether the slot was lost, and could not be taken again. */
  #isOver = false;
  #isReleased = false;
  #cancel: (() => void) | undefined;

  /** @param sentAt when the call was sent that took it */
  constructor(slots: Slots, slot: Slot, sentAt: number) {
    this.#slots = slots;
    this.#slot = slot;
    this.#takenAt = sentAt;
    this.#renewedAt = sentAt;
    slots.added(this);
    this.#schedule(RENEWALS_PER_LEASE);
  }

  get account(): string {
    return this.#slot.account;
  }

  /**
   * Gives the slot back, once. If the store does not answer, this is repeated while the lease lasts.
   * @returns whether this call did it
   */
  release(): MaybePromise<boolean> {
    if (this.#isReleased) return false;
    this.#isReleased = true;
    this.#cancel?.();
    const releasing = this.#release();
    this.#slots.released(this);
    return isPromise(releasing) ? releasing.then(() => true) : true;
  }

  /** Never rejects, and throws nothing. */
  #release(): MaybePromise<void> {
    const { store, timers, leaseMs } = this.#slots;
    const failed = (): void => {
      if (timers.now() - this.#renewedAt < leaseMs)
        timers.after(leaseMs / RETRIES_PER_LEASE, () => this.#release(), true);
    };
    try {
      const released = store.releaseSlot(this.#slot);
      if (isPromise(released)) return released.catch(failed);
    } catch {
      failed();
    }
  }

  #schedule(perLease: number): void {
    const { timers, leaseMs, maxRunMs, store } = this.#slots;
    const untilGivenUp = Math.max(0, this.#takenAt + maxRunMs - timers.now());
    const ms = store.synchronous ? untilGivenUp : Math.min(untilGivenUp, Math.floor(leaseMs / perLease));
    this.#cancel = timers.after(ms, () => void this.#renew(), true);
  }

  async #renew(): Promise<void> {
    const { store, timers, leaseMs, maxRunMs } = this.#slots;
    const sentAt = timers.now();
    if (sentAt - this.#takenAt >= maxRunMs) {
      this.#slots.emit('given_up', this.#slot);
      await this.release();
      return;
    }
    const reply = await this.#hold(store, leaseMs);
    // The release may have overtaken the renewal.
    if (this.#isReleased) return this.#release();
    const isRenewed = reply !== undefined && reply.degraded !== true;
    if (isRenewed) {
      const isLate = this.#isOver || timers.now() - this.#renewedAt > leaseMs;
      if (!reply.held && !this.#isOver) this.#slots.emit('over', this.#slot);
      else if (reply.held && isLate) this.#slots.emit('taken_again', this.#slot);
      this.#isOver = !reply.held;
      if (reply.held) this.#renewedAt = sentAt;
    }
    this.#schedule(isRenewed ? RENEWALS_PER_LEASE : RETRIES_PER_LEASE);
  }

  async #hold(store: SlotStore, leaseMs: number): Promise<SlotReply | undefined> {
    try {
      return await store.holdSlot(this.#slot, leaseMs);
    } catch {
      return undefined;
    }
  }
}
