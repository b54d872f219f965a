import type { DecisionEvent } from 'headgate/gate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import type { ShadowDecision } from 'headgate/shadow';
import type { AdjustmentEntry } from 'headgate/stores';
import { unitsOf } from '../base/cost.ts';
import { shownEntry } from './limit-entry.ts';
import { Recent } from './recent.ts';
import { tightestOf } from './top-accounts.ts';

export const EVENT_TYPES = ['decision', 'shadow', 'limits', 'claim', 'state'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An operator's action on the process. */
export interface StateChange {
  readonly state:
    | 'draining'
    | 'serving'
    | 'reloaded'
    | 'shadow_started'
    | 'shadow_ended'
    | 'windows_reset'
    | 'account_blocked'
    | 'account_unblocked'
    | 'account_paused'
    | 'account_resumed'
    | 'claim_completed'
    | 'claim_released';
  /** Name of the token; undefined for a reload, and for what a provider's answer does. */
  readonly by?: string | undefined;
  /** The account of a block. */
  readonly account?: string | undefined;
  /** The route of a block, if it blocks only one. */
  readonly route?: string | undefined;
}

/** Other limits that this process obeys. */
export interface LimitsEvent {
  readonly version: number;
  /** Undefined if the process read all adjustments at once, and does not know which of them are new. */
  readonly entry: AdjustmentEntry | undefined;
}

/** A request about which a candidate differs from the limits in force. */
export interface ShadowEvent {
  readonly requestId: string;
  readonly decision: ShadowDecision;
}

/** An event of another process: plain data, which can be sent. */
export interface SentEvent {
  readonly type: EventType;
  readonly atMs: number;
  /** The decision that it is about; undefined if it is about none. */
  readonly about: About | undefined;
  readonly data: object;
}

/** The parts of a decision that a filter reads. */
interface About {
  readonly account: string;
  readonly route: string;
  readonly outcome: Outcome;
}

/** An event before it is written as text. Its text is made only for listening clients. */
interface Happening {
  readonly id: number;
  readonly atMs: number;
  readonly what:
    | { readonly type: 'decision'; readonly event: DecisionEvent }
    | { readonly type: 'shadow'; readonly event: ShadowEvent }
    | { readonly type: 'limits'; readonly event: LimitsEvent }
    | { readonly type: 'claim'; readonly event: IdempotencyEvent }
    | { readonly type: 'state'; readonly event: StateChange }
    | { readonly type: EventType; readonly sent: SentEvent };
}

/** Which events a client wants. */
export interface EventFilter {
  readonly types: readonly EventType[];
  readonly account?: string | undefined;
  readonly route?: string | undefined;
  /** Outcome of the decisions. */
  readonly outcome?: Outcome | undefined;
  /** Share of the decisions, from 0 to 1. */
  readonly sample: number;
}

export const OUTCOMES = ['accepted', 'rejected', 'degraded'] as const;
type Outcome = (typeof OUTCOMES)[number];

/** Receives the events for a client. */
export interface EventSink {
  /** Returns false if the client reads more slowly than events come; `onDrain` is called when it reads again. */
  write(text: string): boolean;
  onDrain(listener: () => void): void;
}

/** A client that wants to listen. */
export interface Subscription {
  /** Distinguishes the tokens of clients. */
  readonly token: string;
  readonly filter: EventFilter;
  readonly sink: EventSink;
  /** Id of the client's last event. The client gets later events, as far as they are remembered. */
  readonly after?: number | undefined;
}

/** A client that listens. */
interface Subscriber extends Omit<Subscription, 'after'> {
  /** Events that wait until the client reads again. */
  waiting: string[] | undefined;
  dropped: number;
}

/** Most clients. Each costs time per event. */
export const MAX_SUBSCRIBERS = 8;
/** Most clients with the same token, so that one of them cannot take every place. */
export const MAX_PER_TOKEN = 3;
/** Most events that wait for a client. */
const MAX_WAITING = 256;
const REMEMBERED = 1_000;

/** Passes events on to the clients that listen. */
export class EventFeed {
  readonly #subscribers = new Set<Subscriber>();
  readonly #recent = new Recent<Happening>(REMEMBERED);
  /** Events that clients lost because they read too slowly. */
  dropped = 0;
  #tap: ((event: SentEvent) => void) | undefined;

  add(what: Happening['what'], atMs: number): void {
    const happening = { id: this.#recent.count + 1, atMs, what };
    this.#recent.add(happening);
    for (const subscriber of this.#subscribers) this.#deliver(subscriber, happening);
    this.#tap?.(sentOf(happening));
  }

  /** The id of the last event. */
  get lastId(): number {
    return this.#recent.count;
  }

  /** From now on the listener gets every event, in place of an earlier listener. */
  tap(listener: ((event: SentEvent) => void) | undefined): void {
    this.#tap = listener;
  }

  /** The events after an id, as far as they are remembered, the oldest first. */
  since(id: number): SentEvent[] {
    return this.#after(id).map(sentOf);
  }

  /** Every client learns that it lost events before they were added. */
  lose(count: number): void {
    this.dropped += count;
    for (const subscriber of this.#subscribers) {
      if (subscriber.waiting === undefined) this.#send(subscriber, droppedText(count));
      else subscriber.dropped += count;
    }
  }

  /** @returns a function that ends it; or which bound is reached: of all clients, or of clients with the same token */
  subscribe({ token, filter, sink, after }: Subscription): (() => void) | 'clients' | 'token' {
    const ofToken = [...this.#subscribers].filter((each) => each.token === token).length;
    if (ofToken >= MAX_PER_TOKEN) return 'token';
    if (this.#subscribers.size >= MAX_SUBSCRIBERS) return 'clients';
    const subscriber: Subscriber = { token, filter, sink, waiting: undefined, dropped: 0 };
    if (after !== undefined) {
      for (const happening of this.#after(after)) this.#deliver(subscriber, happening);
    }
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  #after(after: number): Happening[] {
    return [...this.#recent.newestFirst()].filter(({ id }) => id > after).reverse();
  }

  #deliver(subscriber: Subscriber, happening: Happening): void {
    if (!isWanted(subscriber.filter, happening.what)) return;
    if (subscriber.waiting !== undefined && subscriber.waiting.length >= MAX_WAITING) {
      subscriber.dropped++;
      this.dropped++;
      return;
    }
    this.#send(subscriber, textOf(happening));
  }

  #send(subscriber: Subscriber, text: string): void {
    if (subscriber.waiting !== undefined) {
      subscriber.waiting.push(text);
      return;
    }
    if (subscriber.sink.write(text)) return;
    subscriber.waiting = [];
    subscriber.sink.onDrain(() => this.#flush(subscriber));
  }

  #flush(subscriber: Subscriber): void {
    const { waiting = [], dropped } = subscriber;
    subscriber.waiting = undefined;
    subscriber.dropped = 0;
    for (const text of waiting) this.#send(subscriber, text);
    if (dropped > 0) this.#send(subscriber, droppedText(dropped));
  }
}

function droppedText(count: number): string {
  return `event: dropped\ndata: ${JSON.stringify({ count })}\n\n`;
}

function sentOf({ atMs, what }: Happening): SentEvent {
  return 'sent' in what ? what.sent : { type: what.type, atMs, about: aboutOf(what), data: dataOf(what) };
}

function aboutOf(what: Happening['what']): About | undefined {
  if ('sent' in what) return what.sent.about;
  if (what.type !== 'decision' && what.type !== 'shadow') return undefined;
  const decision = what.type === 'shadow' ? what.event.decision.current : what.event.decision;
  return { account: decision.account, route: decision.route, outcome: outcomeOf(decision) };
}

function isWanted({ types, account, route, outcome, sample }: EventFilter, what: Happening['what']): boolean {
  if (!types.includes(what.type)) return false;
  const isFiltered = account !== undefined || route !== undefined || outcome !== undefined;
  const about = aboutOf(what);
  if (about === undefined) return !isFiltered;
  return (
    (account === undefined || account === about.account) &&
    (route === undefined || route === about.route) &&
    (outcome === undefined || outcome === about.outcome) &&
    (sample >= 1 || Math.random() < sample)
  );
}

/** The group whose limit rejected a request; undefined without one. */
export function groupOf({ rejectedBy }: DecisionEvent['decision']): string | undefined {
  return rejectedBy === 'account' ? undefined : rejectedBy;
}

export function outcomeOf({ accepted, degraded }: DecisionEvent['decision']): Outcome {
  return degraded ? 'degraded' : accepted ? 'accepted' : 'rejected';
}

function textOf({ id, atMs, what }: Happening): string {
  const data = { at: new Date(atMs).toISOString(), ...dataOf(what) };
  return `id: ${id}\nevent: ${what.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

function dataOf(what: Happening['what']): object {
  if ('sent' in what) return what.sent.data;
  if (what.type === 'state') return what.event;
  if (what.type === 'decision') {
    const { requestId, decision } = what.event;
    const { account, route, lane, cost, costs, blocked } = decision;
    const group = groupOf(decision);
    const why =
      blocked === undefined ? { tightest: tightestOf(decision), ...rejectionInFlight(decision) } : { blocked };
    const outcome = outcomeOf(decision);
    return { req_id: requestId, account, route, lane, group, cost, ...unitsOf(costs), outcome, ...why };
  }
  if (what.type === 'shadow') {
    const { requestId, decision } = what.event;
    const { account, route } = decision.current;
    const candidate = decision.outcome === 'onlyCurrent' ? 'accepted' : 'rejected';
    return {
      req_id: requestId,
      account,
      route,
      current: outcomeOf(decision.current),
      candidate,
      limit: decision.limit,
    };
  }
  if (what.type === 'limits') return shownChange(what.event);
  const { type, scope, key } = what.event;
  // The rest of an event may contain an error, and with it details from the Redis client.
  const refusal = what.event.type === 'refused' ? { reason: what.event.reason } : {};
  return { application: scope, key, what: type, ...refusal };
}

/** Why it was rejected, if too many requests ran at the same time. */
function rejectionInFlight({ accepted, inFlight }: DecisionEvent['decision']): object {
  return accepted || inFlight === undefined ? {} : { inFlight };
}

function shownChange({ version, entry }: LimitsEvent): object {
  if (entry === undefined) return { version, by: null, reason: null, source: 'read', changes: [] };
  const { at: _, ...shown } = shownEntry(entry);
  return shown;
}
