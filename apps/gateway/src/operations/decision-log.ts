import type { Cost, Decision } from 'headgate';
import { decorateStore } from 'headgate/internal';
import type { LimitStore } from 'headgate/stores';
import { unitsOf } from '../base/cost.ts';
import { isPromise } from '../base/is-promise.ts';
import type { Account } from '../config/schema.ts';

/** The place of a call among the calls of this process that change the same counters. */
interface Place {
  /** Undefined until the turn of the event loop ends in which the call was made. */
  order: number | undefined;
  /** In milliseconds on the store's clock. */
  at: number;
}

/** A decision that no log line shows yet. */
interface Decided {
  readonly sinceMs: number;
  readonly fields: string;
  /** The rest of the decision's separate line. */
  readonly rest: string;
}

/** Parts of the log that write the lines. */
export interface DecisionLogOptions {
  /** Whether lines name accounts, and requests are logged at all. */
  readonly isOn: () => boolean;
  /** Writes a line of level `info`. */
  readonly write: (fields: string) => void;
}

/** The decision about a request that runs for longer gets a separate line, so that the log is almost sorted by time. */
const OWN_LINE_MS = 5_000;

/**
 * The log's fields about each decision, so that `headgate simulate` can repeat all of them exactly: when the store
 * decided, and in which order. While it is off, nothing is numbered.
 */
export class DecisionLog {
  readonly #options: DecisionLogOptions;
  readonly #places = new WeakMap<Decision, Place>();
  readonly #settlements = new WeakMap<Decision, Place>();
  readonly #settling = new Set<Place>();
  readonly #decided = new Map<string, Decided>();
  /** Calls of this turn that a store sends at its end. */
  #turn: Place[] = [];
  #orders = 0;
  #latest = 0;

  constructor(options: DecisionLogOptions) {
    this.#options = options;
  }

  /** The same store; its decisions are numbered in the order in which the store decides about one account. */
  numbered(store: LimitStore): LimitStore {
    return decorateStore(store, {
      consume: (consume) => (account, route, windowSet, cost) => {
        const result = consume(account, route, windowSet, cost);
        if (!this.#options.isOn()) return result;
        if (!isPromise(result)) return this.#number(result, { order: ++this.#orders, at: 0 });
        const place: Place = { order: undefined, at: 0 };
        if (this.#turn.length === 0) setImmediate(() => this.#endTurn());
        this.#turn.push(place);
        return result.then((decision) => this.#number(decision, place));
      },
      knownRejection:
        (known) =>
        (...args) => {
          const decision = known(...args);
          return decision && this.#options.isOn() ? this.#number(decision, { order: ++this.#orders, at: 0 }) : decision;
        },
      settle: (settle) => (decision, cost) => {
        if (!this.#options.isOn() || decision.degraded) return settle(decision, cost);
        // A store sends it at once, and so before the checks of this turn.
        const place: Place = { order: ++this.#orders, at: this.#latest };
        this.#settlements.set(decision, place);
        this.#settling.add(place);
        const settled = settle(decision, cost);
        const done = (): void => void this.#settling.delete(place);
        if (isPromise(settled)) void settled.then(done, done);
        else done();
        return settled;
      },
    });
  }

  /**
   * A limit decided about a request.
   * @param find only called while the log is on
   */
  onDecision(requestId: string, decision: Decision, find: (account: string) => Account | undefined): void {
    const place = placeIn(this.#places, decision);
    if (place?.order === undefined || !this.#options.isOn()) return;
    const fields = fieldsOf(decision, { order: place.order, at: decision.decidedAt }, find(decision.account));
    const outcome = decision.accepted ? (decision.degraded ? 'degraded' : 'accepted') : 'rejected';
    const names = `"route":${JSON.stringify(decision.route)},"account":${JSON.stringify(decision.account)}`;
    const rest = `"req_id":"${requestId}",${names},"decision":"${outcome}",`;
    this.#decided.set(requestId, { sinceMs: performance.now(), fields, rest });
    this.#writeOld();
  }

  /**
   * The charge of a request was settled.
   * @param cost 0 if it was refunded
   */
  onSettled(requestId: string, decision: Decision, cost: Cost): void {
    const place = placeIn(this.#settlements, decision);
    if (place === undefined || !this.#options.isOn()) return;
    const { order, at } = place;
    this.#options.write(
      `"req_id":"${requestId}","cost":${JSON.stringify(cost)},"at":${at},"order":${order},"msg":"refund"`,
    );
  }

  /**
   * Fields for a request's line if its decision is not logged yet; `"at":null` if it is, or if there is no decision.
   */
  take(requestId: string): string {
    const decided = this.#decided.get(requestId);
    this.#decided.delete(requestId);
    this.#writeOld();
    return decided?.fields ?? '"at":null,';
  }

  /** Writes a line for each decision that no line shows yet. */
  flush(): void {
    this.#writeOld(Number.POSITIVE_INFINITY);
  }

  #writeOld(before = performance.now() - OWN_LINE_MS): void {
    for (const [requestId, { sinceMs, fields, rest }] of this.#decided) {
      if (sinceMs > before) return;
      this.#decided.delete(requestId);
      this.#options.write(`${rest}${fields}"msg":"decision"`);
    }
  }

  #endTurn(): void {
    for (const place of this.#turn) place.order = ++this.#orders;
    this.#turn = [];
  }

  #number(decision: Decision, place: Place): Decision {
    this.#places.set(decision, place);
    if (decision.degraded) return decision;
    const { decidedAt } = decision;
    if (decidedAt > this.#latest) this.#latest = decidedAt;
    // The reply to a call that was sent before a settlement may arrive after the settlement was sent.
    for (const settlement of this.#settling)
      if ((place.order ?? 0) < (settlement.order as number) && decidedAt > settlement.at) settlement.at = decidedAt;
    return decision;
  }
}

/** A decision of several parts is numbered by the first of them that has a place: a settlement may be of one unit alone. */
function placeIn(places: WeakMap<Decision, Place>, decision: Decision): Place | undefined {
  const parts = decision.parts?.map((part) => part.decision) ?? [decision];
  return parts.map((each) => places.get(each)).find((place) => place !== undefined);
}

function fieldsOf(decision: Decision, { order, at }: Place, account: Account | undefined): string {
  const { provider, plan } = account ?? {};
  return (
    (provider === undefined ? '' : `"provider":${JSON.stringify(provider)},`) +
    (plan === undefined ? '' : `"plan":${JSON.stringify(plan)},`) +
    (decision.lane === undefined ? '' : `"lane":${JSON.stringify(decision.lane)},`) +
    (decision.groups === undefined ? '' : `"groups":${JSON.stringify(decision.groups)},`) +
    `"cost":${JSON.stringify(unitsOf(decision.costs).costs ?? decision.cost)},"at":${at},"order":${order},` +
    (decision.degraded ? '"degraded":true,' : '') +
    (decision.blocked === undefined ? '' : '"blocked":true,') +
    (decision.accepted || decision.inFlight === undefined ? '' : '"in_flight":true,')
  );
}
