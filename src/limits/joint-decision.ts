import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { Block } from '../core/block.ts';
import { Decision, type DecisionPart, FITS, type WindowStatus } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import type { InFlightStatus } from '../core/slot.ts';
import type { UnitCosts } from '../core/unit.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Groups } from './groups.ts';
import { joinWindowSets } from './joined-window-sets.ts';
import type { HeldSlot } from './slots.ts';

/** The part of a request whose windows are the account's own. Any other part is of a group, by its name. */
export const OF_ACCOUNT = 'account';

/** One part of a request. It is decided by itself, at the same time as the other parts (S31). */
export interface JointPart {
  /** {@link OF_ACCOUNT}, or the name of a group. */
  readonly subject: string;
  /** A rejection that is certain without any call; undefined if `decide` must be called. */
  known(): Decision | undefined;
  /** Charges the part, or rejects the request. */
  decide(): MaybePromise<Decision>;
  /** Makes an accepted decision of `decide` undone. */
  undo(decision: Decision): MaybePromise<unknown>;
}

/** The part of a request that one window set of a store decides. */
export function storePart(
  store: LimitStore,
  subject: string,
  account: string,
  route: string,
  windowSet: WindowSet,
  cost: number,
): JointPart {
  return {
    subject,
    known: () => store.knownRejection?.(account, route, windowSet, cost),
    decide: () => store.consume(account, route, windowSet, cost),
    undo: (decision) => (store.undo === undefined ? store.settle(decision, 0) : store.undo(decision)),
  };
}

/** The request that the parts make up together. */
export interface JointRequest {
  readonly account: string;
  readonly route: string;
  /** In requests; 0 if it costs none. */
  readonly cost: number;
  readonly groups?: Groups | undefined;
  /** Per unit (S33); undefined if it costs only requests. */
  readonly costs?: UnitCosts | undefined;
}

/**
 * Decides a request whose parts must all be accepted (S31). All are asked at the same time, so an accept is one trip. If
 * one rejects, those that were accepted are undone before the decision is returned. So no part ever accepts too much; in
 * between, another request may be rejected that would have fitted.
 * @param parts at least one, in the order of checking
 * @param undoFailed called with the error of each part that cannot be undone
 * @throws the first error of a part; the others are undone then
 */
export function decideJointly(
  request: JointRequest,
  parts: readonly JointPart[],
  undoFailed: UndoFailed = () => {},
): MaybePromise<JointDecision> {
  for (const part of parts) {
    const decision = part.known();
    // Nothing needs to be charged to know that the request is rejected (S20).
    if (decision !== undefined) return new JointDecision(request, [{ subject: part.subject, decision }]);
  }
  const asked: MaybePromise<Decision>[] = [];
  let thrown: Failure | undefined;
  for (const part of parts) {
    try {
      const decision = part.decide();
      asked.push(decision);
      if (!isPromise(decision) && !decision.accepted) break;
    } catch (error) {
      thrown = { error };
      break;
    }
  }
  if (!asked.some(isPromise)) return concluded(request, parts, asked as Decision[], thrown, undoFailed);
  return Promise.allSettled(asked).then((settled) => {
    const failed = settled.find((each) => each.status === 'rejected');
    const decisions = settled.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
    return concluded(request, parts, decisions, failed === undefined ? thrown : { error: failed.reason }, undoFailed);
  });
}

/** Must not throw. */
export type UndoFailed = (error: unknown) => void;

interface Failure {
  readonly error: unknown;
}

/** @param decisions of the first parts: those after a rejection or an error may be missing */
function concluded(
  request: JointRequest,
  parts: readonly JointPart[],
  decisions: readonly (Decision | undefined)[],
  failure: Failure | undefined,
  undoFailed: UndoFailed,
): MaybePromise<JointDecision> {
  const conclude = (): JointDecision => {
    if (failure !== undefined) throw failure.error;
    return new JointDecision(
      request,
      decisions.map((decision, i) => ({
        subject: (parts[i] as JointPart).subject,
        decision: decision as Decision,
      })),
    );
  };
  const isAccepted = failure === undefined && decisions.every((decision) => decision?.accepted);
  return isAccepted ? conclude() : afterUndo(parts, decisions, conclude, undoFailed);
}

/** Undoes the accepted decisions. A charge that cannot be undone is over with its windows. */
function afterUndo<Result>(
  parts: readonly JointPart[],
  decisions: readonly (Decision | undefined)[],
  conclude: () => Result,
  undoFailed: UndoFailed,
): MaybePromise<Result> {
  const pending: Promise<unknown>[] = [];
  for (const [i, decision] of decisions.entries()) {
    if (decision === undefined || !decision.accepted) continue;
    try {
      const undone = (parts[i] as JointPart).undo(decision);
      if (isPromise(undone)) pending.push(undone.catch(undoFailed));
    } catch (error) {
      undoFailed(error);
    }
  }
  return pending.length === 0 ? conclude() : Promise.all(pending).then(conclude);
}

/**
 * Settles several parts of a decision.
 * @returns whether something was changed
 * @throws the first error; the other parts are settled then
 */
export async function settleParts<Part>(
  parts: readonly Part[],
  settle: (part: Part) => MaybePromise<boolean>,
): Promise<boolean> {
  const settled = await Promise.allSettled(parts.map(async (part) => settle(part)));
  const failed = settled.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return settled.some((each) => each.status === 'fulfilled' && each.value);
}

/** Neither the index of a window nor FITS: a part rejected the request, and says by which window or block. */
const BY_PART = -3;

/** A decision about a request of several parts, each of which was decided by itself. */
export class JointDecision extends Decision {
  readonly #groups: Groups | undefined;
  readonly #parts: readonly DecisionPart[];
  /** The part that rejected the request. */
  readonly #rejecting: DecisionPart | undefined;
  readonly #costs: UnitCosts | undefined;

  /**
   * @param parts in the order of checking. If some rejected the request, the first one counts, and those after it are
   * left out. Those before it are undone, or will be
   */
  constructor({ account, route, cost, costs, groups }: JointRequest, parts: readonly DecisionPart[]) {
    const rejecting = parts.find(({ decision }) => !decision.accepted);
    const counted = rejecting === undefined ? parts : parts.slice(0, parts.indexOf(rejecting) + 1);
    const { decision } = rejecting ?? (counted[0] as DecisionPart);
    const degraded = rejecting?.decision.degraded ?? counted.some((part) => part.decision.degraded);
    const by = rejecting === undefined ? FITS : BY_PART;
    super(account, route, joinWindowSets(counted), cost, decision.decidedAt, by, [], degraded);
    this.#groups = groups;
    this.#parts = counted;
    this.#rejecting = rejecting;
    this.#costs = costs;
  }

  override get costs(): UnitCosts {
    return this.#costs ?? super.costs;
  }

  override get groups(): Groups | undefined {
    return this.#groups;
  }

  /** Those with windows. */
  override get parts(): readonly DecisionPart[] {
    return this.#parts.filter(({ decision }) => !('slot' in decision));
  }

  /** The slots that the request holds in flight, until they are released (S29). */
  get slots(): readonly HeldSlot[] {
    return this.#parts.flatMap(({ decision }) => (decision as { readonly slot?: HeldSlot }).slot ?? []);
  }

  override get inFlight(): InFlightStatus | undefined {
    if (this.#rejecting !== undefined) return this.#rejecting.decision.inFlight;
    const all = this.#parts.flatMap(({ decision }) => decision.inFlight ?? []);
    return all.sort((one, other) => one.max - one.running - (other.max - other.running))[0];
  }

  override get rejectedBy(): string | undefined {
    return this.#rejecting?.subject;
  }

  override get shown(): WindowStatus | undefined {
    const first = this.#rejecting ?? this.#parts.find(({ decision }) => decision.shown !== undefined);
    const { shown } = first?.decision ?? {};
    if (first === undefined || shown === undefined) return undefined;
    // A unit can have two parts: the windows of the route, and those that all routes share.
    const last = this.#rejecting ?? this.#parts.findLast((part) => isSameUnit(part, first)) ?? first;
    return named(last.decision.shown ?? shown, last.subject);
  }

  override get trace(): readonly WindowStatus[] {
    return this.#parts.flatMap(({ decision, subject }) => {
      const statuses = decision.accepted && !this.accepted ? uncharged(decision) : decision.trace;
      return statuses.map((status) => named(status, subject));
    });
  }

  override get impossible(): boolean {
    return this.#rejecting?.decision.impossible ?? false;
  }

  override get blocked(): Block | undefined {
    return this.#rejecting?.decision.blocked;
  }

  override get leased(): boolean {
    return this.#parts.some(({ decision }) => decision.leased);
  }

  /** False: each part is settled by itself. */
  override takeCharge(): boolean {
    return false;
  }

  override returnCharge(): void {}

  override asDegraded(): JointDecision {
    return new JointDecision(
      this,
      this.#parts.map((part) => ({ ...part, decision: part.decision.asDegraded() })),
    );
  }

  override toJSON(): object {
    return { ...super.toJSON(), costs: this.#costs, rejectedBy: this.rejectedBy };
  }
}

function isSameUnit(one: DecisionPart, other: DecisionPart): boolean {
  return one.subject === other.subject && one.decision.shown?.unit === other.decision.shown?.unit;
}

/** The status with the name of the group whose window it is. */
function named(status: WindowStatus, subject: string): WindowStatus {
  return subject === OF_ACCOUNT ? status : { ...status, group: subject };
}

/** The windows of an accepted decision without its charge. */
function uncharged({ trace, cost, decidedAt }: Decision): readonly WindowStatus[] {
  return trace.map((status) => {
    const { max, durationMs, startedAt } = status;
    const remaining = Math.min(max, status.remaining + cost);
    if (startedAt !== decidedAt || remaining < max) return { ...status, remaining };
    return { ...status, remaining, resetMs: durationMs, startedAt: undefined };
  });
}
