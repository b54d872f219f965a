import type { Decision } from 'headgate';
import type { DecisionEvent, GateEvent } from 'headgate/gate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import type { AdjustmentEntry, ClaimId } from 'headgate/stores';
import type { DecisionLabel } from '../exchange/exchange.ts';
import { EventFeed, type SentEvent, type ShadowEvent, type StateChange, type Subscription } from './event-feed.ts';
import { Recent } from './recent.ts';
import { type Counted, type Second, Series } from './series.ts';
import { type AccountRate, type Ranking, type SeenAccount, TopAccounts, type TopList } from './top-accounts.ts';

/** A decision, and the request that it was made for. */
export interface TracedDecision {
  readonly requestId: string;
  readonly atMs: number;
  readonly decision: Decision;
}

/** An orphan that a retry ran into. */
export interface MetOrphan extends ClaimId {
  /** When a retry met it last, in milliseconds since 1970. */
  readonly atMs: number;
}

const AVERAGED_SECONDS = 10;
const DECISIONS = 1_000;
/** The most orphans that are remembered. */
export const ORPHANS = 1_000;

/** Recent requests in the memory of this process. */
interface Memory {
  readonly top: TopAccounts;
  readonly series: Series;
  readonly decisions: Recent<TracedDecision>;
  /** By scope and key, the most recently met last. */
  readonly orphans: Map<string, MetOrphan>;
  readonly feed: EventFeed;
}

/** Remembers the last requests for the Admin API, in bounded memory. While it is off, it remembers nothing. */
export class Traffic {
  #memory: Memory | undefined;

  constructor(readonly now: () => number = Date.now) {}

  turn(isOn: boolean): void {
    if (isOn) this.#memory ??= createMemory(this.now());
    else this.#memory = undefined;
  }

  onEvent(event: GateEvent): void {
    if (this.#memory === undefined) return;
    const { top, series } = this.#memory;
    const atMs = this.now();
    if (event.type === 'decision') {
      const { decision } = event;
      top.add(decision, atMs);
      // What an accepted part of a rejected request charged is undone.
      for (const { subject, decision: part } of decision.parts ?? [])
        if (subject !== 'account' && part.accepted === decision.accepted) top.add(part, atMs);
      this.onDecision(event);
    } else if (event.type === 'provider_rejected') series.count('provider_rejected', atMs);
    else if (event.type === 'cooldown')
      this.onState({ state: event.state === 'started' ? 'account_paused' : 'account_resumed', ...event.target });
  }

  /** A decision that is in no list of accounts. */
  onDecision(event: DecisionEvent): void {
    if (this.#memory === undefined) return;
    const { decisions, feed } = this.#memory;
    const { decision, requestId } = event;
    const atMs = this.now();
    decisions.add({ requestId, atMs, decision });
    feed.add({ type: 'decision', event }, atMs);
  }

  onIdempotency(event: IdempotencyEvent): void {
    if (this.#memory === undefined) return;
    const { orphans, feed } = this.#memory;
    const atMs = this.now();
    feed.add({ type: 'claim', event }, atMs);
    const isOrphan = event.type === 'claimed' ? event.inherited : event.type === 'refused' && event.reason === 'orphan';
    if (!isOrphan) return;
    const { scope, key } = event;
    const name = JSON.stringify([scope, key]);
    orphans.delete(name);
    orphans.set(name, { scope, key, atMs });
    if (orphans.size > ORPHANS) orphans.delete(orphans.keys().next().value as string);
  }

  onAnswered(label: DecisionLabel): void {
    if (this.#memory !== undefined && label !== 'preflight' && label !== 'answered')
      this.#memory.series.count(label, this.now());
  }

  onStoreCall(seconds: number): void {
    this.#memory?.series.time(seconds, this.now());
  }

  onShadow(event: ShadowEvent): void {
    this.#memory?.feed.add({ type: 'shadow', event }, this.now());
  }

  onState(event: StateChange): void {
    this.#memory?.feed.add({ type: 'state', event }, this.now());
  }

  /** Other limits apply from now on. */
  onLimits({ revision, entries }: { readonly revision: string; readonly entries: readonly AdjustmentEntry[] }): void {
    if (this.#memory === undefined) return;
    const atMs = this.now();
    // Without entries everything was read at once. A revision begins with its version, as in `17.k3v9q2`.
    for (const entry of entries.length === 0 ? [undefined] : entries) {
      const version = entry?.version ?? Number.parseInt(revision, 10);
      this.#memory.feed.add({ type: 'limits', event: { version, entry } }, atMs);
    }
  }

  top(by: Ranking, limit: number): TopList {
    return this.#on.top.list(by, limit, this.now());
  }

  /** Figures per second: the average of the last ten. */
  perSecond(): Record<Counted, number> {
    return this.#on.series.average(AVERAGED_SECONDS, this.now());
  }

  /** Undefined while it is off. */
  decisionsPerSecond(): number | undefined {
    if (this.#memory === undefined) return undefined;
    const { accepted, rejected, degraded } = this.perSecond();
    return accepted + rejected + degraded;
  }

  /** Each list of accounts; undefined while it is off. */
  tops(limit: number): Record<Ranking, TopList> | undefined {
    const top = this.#memory?.top;
    if (top === undefined) return undefined;
    const listOf = (by: Ranking): TopList => top.list(by, limit, this.now());
    return { rejected: listOf('rejected'), near: listOf('near'), accepted: listOf('accepted') };
  }

  /** The accounts of the last five to ten minutes, the busiest first. */
  seen(): SeenAccount[] {
    return this.#on.top.seen(this.now());
  }

  /** How many requests an account makes, on average over the last five to ten minutes. */
  rate(account: string): AccountRate {
    return this.#on.top.rate(account, this.now());
  }

  /** The last seconds before a moment, the oldest first. */
  seconds(count: number, nowMs = this.now()): Second[] {
    return this.#on.series.list(count, nowMs);
  }

  /** The decision about a request, if it is among the last 1,000. */
  find(requestId: string): TracedDecision | undefined {
    for (const traced of this.#on.decisions.newestFirst()) if (traced.requestId === requestId) return traced;
    return undefined;
  }

  /** The last 1,000 orphans that retries ran into, the last one first. */
  orphans(): MetOrphan[] {
    return [...this.#on.orphans.values()].reverse();
  }

  /** See {@link EventFeed.subscribe}. */
  subscribe(subscription: Subscription): ReturnType<EventFeed['subscribe']> {
    return this.#on.feed.subscribe(subscription);
  }

  /** From now on the listener gets every event of this process; undefined: it ends. Returns the id of the last event. */
  tapEvents(listener: ((event: SentEvent) => void) | undefined): number {
    this.#on.feed.tap(listener);
    return this.#on.feed.lastId;
  }

  /** The events of this process after an id, if they are among the last 1,000. */
  eventsSince(id: number): SentEvent[] {
    return this.#on.feed.since(id);
  }

  /**
   * Adds events of other processes.
   * @param dropped how many more there were
   */
  addSent(events: readonly SentEvent[], dropped: number): void {
    const { feed } = this.#on;
    for (const sent of events) feed.add({ type: sent.type, sent }, sent.atMs);
    if (dropped > 0) feed.lose(dropped);
  }

  /** Only the Admin API asks, and while there is one this is on. */
  get #on(): Memory {
    this.#memory ??= createMemory(this.now());
    return this.#memory;
  }
}

function createMemory(nowMs: number): Memory {
  return {
    top: new TopAccounts(nowMs),
    series: new Series(),
    decisions: new Recent(DECISIONS),
    orphans: new Map(),
    feed: new EventFeed(),
  };
}
