import type { Block, BlockTarget } from '../core/block.ts';
import type { Clock } from '../core/clock.ts';
import type { WindowStatus } from '../core/decision.ts';
import type { LimitName } from '../core/limit.ts';
import type { ResetTarget, SynchronousLimitStore } from '../core/ports.ts';
import type { NamedWindow, WindowSet } from '../core/window-set.ts';

/**
 * The identity of the counter of a window (S1, S10). The max is not part of it, so the count stays when the max is
 * adjusted.
 */
interface CounterId {
  readonly account: string;
  /** Undefined for an All methods counter that all routes of the account share (scope `account`). */
  readonly route: string | undefined;
  readonly limit: LimitName;
  readonly durationMs: number;
}

/** A line of the ledger: the charge of an accepted request to one window, or a change of it (a refund is negative). */
interface Entry extends CounterId {
  readonly at: number;
  readonly cost: number;
  /** Whether the instance is removed if it started at `at`, and its count is 0 then. */
  readonly isUndone?: boolean;
}

/** The instance of the last charge. The clock decides whether it is over. */
interface Instance {
  readonly startedAt: number;
  readonly count: number;
}

/** The facts that settling needs: the window that was charged, its instance, and the cost (S13). */
export interface ModelCharge extends CounterId {
  readonly startedAt: number;
  readonly cost: number;
}

/** A decision as plain data, to compare with the decision of the store under test. */
export interface ModelDecision {
  readonly accepted: boolean;
  /** The one window that headers describe (S6); undefined when the window set is empty. */
  readonly shown: WindowStatus | undefined;
  /** Every window that was checked, in the order of the checks (S2). */
  readonly trace: readonly WindowStatus[];
  /** Whether waiting cannot help: the cost is above the max of the window that rejected (S11). */
  readonly impossible: boolean;
  /** The block that rejected the request (S21). */
  readonly blocked: Block | undefined;
  readonly charges: readonly ModelCharge[];
  readonly decidedAt: number;
}

/** A block from one time to another. */
interface ModelBlock extends BlockTarget {
  readonly until: number;
  readonly reason: string | undefined;
}

/** Charges of equal requests in one step (S32). */
export interface ModelLease {
  readonly decision: ModelDecision;
  readonly granted: number;
  /** All granted requests after the first, as if they were one. */
  readonly further: ModelDecision;
}

/** The rules S1 to S14, S21, S31 (undo), S32 and S35, without any optimization. */
export interface Model
  extends Required<Pick<SynchronousLimitStore, 'peek' | 'charge' | 'reset' | 'block' | 'unblock' | 'blocked'>> {
  /** Does what `consume` of a `LimitStore` must do. */
  consume(account: string, route: string, windowSet: WindowSet, cost: number): ModelDecision;
  /** Does what `lease` of a `LimitStore` must do. */
  lease(account: string, route: string, windowSet: WindowSet, cost: number, requests: number): ModelLease;
  /** Does what `settle` of a `LimitStore` must do. */
  settle(decision: ModelDecision, cost: number): boolean;
  /** Does what `undo` of a `LimitStore` must do. */
  undo(decision: ModelDecision): boolean;
}

/**
 * Creates the model against which stores are tested. It stores a list of all charges, and derives everything else from
 * that list, in every call. Nothing is cached, expired, indexed or shared with `src/core`, so a mistake there cannot be
 * repeated here.
 */
export function createModel(clock: Clock): Model {
  let ledger: Entry[] = [];
  let blocks: ModelBlock[] = [];
  const settled = new Set<ModelDecision>();

  /** An instance is active from its start for its duration, also if the clock is set back to before its start. */
  function isActive({ startedAt }: Instance, durationMs: number, at: number): boolean {
    return startedAt <= at && at < startedAt + durationMs;
  }

  function activeInstance(id: CounterId): Instance | undefined {
    let instance: Instance | undefined;
    for (const { at, cost, isUndone } of ledger.filter((entry) => isSameCounter(entry, id))) {
      const isOver = instance === undefined || !isActive(instance, id.durationMs, at);
      if (cost > 0 && isOver) instance = { startedAt: at, count: cost };
      else if (instance) instance = { startedAt: instance.startedAt, count: within(instance.count + cost) };
      if (isUndone && instance?.startedAt === at && instance.count === 0) instance = undefined;
    }
    return instance && isActive(instance, id.durationMs, clock.now()) ? instance : undefined;
  }

  function statusOf(id: CounterId, max: number, isRejection: boolean): WindowStatus {
    const instance = activeInstance(id);
    const { limit, durationMs } = id;
    let resetMs = isRejection ? durationMs : 0;
    if (instance) resetMs = max === 0 ? durationMs : instance.startedAt + durationMs - clock.now();
    const remaining = Math.max(0, max - (instance?.count ?? 0));
    return { limit, max, remaining, resetMs, durationMs, startedAt: instance?.startedAt };
  }

  function blockOf({ account, route }: BlockTarget): Block | undefined {
    const [last] = blocks
      .filter((block) => block.account === account && (block.route === undefined || block.route === route))
      .sort((a, b) => b.until - a.until || (a.route === undefined ? -1 : 1));
    const forMs = (last?.until ?? 0) - clock.now();
    return last === undefined || forMs <= 0 ? undefined : { forMs, reason: last.reason };
  }

  function unblock({ account, route }: BlockTarget): void {
    blocks = blocks.filter((block) => block.account !== account || block.route !== route);
  }

  function reset({ account, route }: ResetTarget): void {
    ledger = ledger.filter((entry) => {
      const isNamed = (account ?? entry.account) === entry.account && (route ?? entry.route) === entry.route;
      return !isNamed;
    });
  }

  function peek(account: string, route: string, windowSet: WindowSet): readonly WindowStatus[] {
    return windowSet.windows.map((window) => statusOf(counterId(account, route, windowSet, window), window.max, false));
  }

  function consume(account: string, route: string, windowSet: WindowSet, cost: number): ModelDecision {
    const decidedAt = clock.now();
    const blocked = windowSet.windows.length === 0 ? undefined : blockOf({ account, route });
    if (blocked !== undefined)
      return { accepted: false, shown: undefined, trace: [], impossible: false, blocked, charges: [], decidedAt };

    const ids = windowSet.windows.map((window) => counterId(account, route, windowSet, window));
    const statuses = (count: number, isRejection: boolean): WindowStatus[] =>
      windowSet.windows.slice(0, count).map(({ max }, i) => statusOf(ids[i] as CounterId, max, isRejection));

    const rejecting = windowSet.windows.findIndex(({ max }, i) => {
      return (activeInstance(ids[i] as CounterId)?.count ?? 0) + cost > max;
    });
    if (rejecting >= 0) {
      const trace = statuses(rejecting + 1, true);
      const impossible = cost > (windowSet.windows[rejecting] as NamedWindow).max;
      return { accepted: false, shown: trace.at(-1), trace, impossible, blocked, charges: [], decidedAt };
    }

    ledger.push(...ids.map((id) => ({ ...id, at: clock.now(), cost })));
    const trace = statuses(ids.length, false);
    const charges = ids.map((id, i) => ({ ...id, cost, startedAt: trace[i]?.startedAt as number }));
    return { accepted: true, shown: trace.at(-1), trace, impossible: false, blocked, charges, decidedAt };
  }

  function settle(decision: ModelDecision, finalCost: number, isUndo: boolean): boolean {
    if (settled.has(decision)) return false;
    const live = decision.charges.filter((charge) => activeInstance(charge)?.startedAt === charge.startedAt);
    for (const { startedAt, cost, ...id } of live) {
      const isUndone = isUndo && startedAt === decision.decidedAt;
      ledger.push({ ...id, at: startedAt, cost: finalCost - cost, isUndone });
    }
    // A decision that changed nothing, as in another store than its own, can still be settled.
    if (live.length > 0) settled.add(decision);
    return live.length > 0;
  }

  return {
    consume,

    lease(account, route, windowSet, cost, requests) {
      const decision = consume(account, route, windowSet, cost);
      let granted = decision.accepted ? 1 : 0;
      while (decision.accepted && granted < requests && consume(account, route, windowSet, cost).accepted) granted++;
      const charges = decision.charges.map((charge) => ({ ...charge, cost: (granted - 1) * cost }));
      return { decision, granted, further: { ...decision, charges } };
    },

    peek,

    charge(account, route, windowSet, cost) {
      const ids = windowSet.windows.map((window) => counterId(account, route, windowSet, window));
      ledger.push(...ids.map((id) => ({ ...id, at: clock.now(), cost })));
      return peek(account, route, windowSet);
    },

    settle: (decision, finalCost) => settle(decision, finalCost, false),
    undo: (decision) => settle(decision, 0, true),

    reset,

    block(target, { forMs, reason }, fresh) {
      unblock(target);
      if (fresh !== undefined) reset(target);
      blocks.push({ ...target, until: clock.now() + forMs, reason });
    },

    unblock,
    blocked: blockOf,
  };
}

/** A count is a safe integer, 0 or more, whatever was settled. */
function within(count: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, count));
}

function counterId(
  account: string,
  route: string,
  windowSet: WindowSet,
  { limit, durationMs }: NamedWindow,
): CounterId {
  const isShared = limit === 'all-methods' && windowSet.allMethodsScope === 'account';
  return { account, route: isShared ? undefined : route, limit, durationMs };
}

function isSameCounter(a: CounterId, b: CounterId): boolean {
  return a.account === b.account && a.route === b.route && a.limit === b.limit && a.durationMs === b.durationMs;
}
