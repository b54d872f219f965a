import { setTimeout as sleep } from 'node:timers/promises';

/** The part of a decision that is counted: of the library's source in its own tests, of the built library elsewhere. */
interface CheckDecision {
  readonly accepted: boolean;
  readonly degraded: boolean;
  readonly route: string;
  readonly trace: Iterable<{
    readonly limit: string;
    readonly durationMs: number;
    readonly startedAt: number | undefined;
  }>;
}

/** A store whose checks are counted. */
interface CheckedStore {
  stats(): { readonly breaker: string; readonly degraded: number; readonly late: number; readonly timeouts: number };
  consume(account: string, route: string, plan: never, cost: number): CheckDecision | Promise<CheckDecision>;
}

/** The outcome of one check. */
export type Outcome =
  | 'accepted'
  | 'rejected'
  | 'degraded-accepted'
  | 'degraded-rejected'
  | 'store_timeout'
  | 'store_unavailable';

export const HEALTHY: readonly Outcome[] = ['accepted', 'rejected'];

/** Sends checks. Counts the outcomes, the longest wait, and the accepted checks per window instance. */
export class Caller {
  readonly outcomes: Outcome[] = [];
  /** Checks that Redis accepted, by route, limit, duration and start of the window. */
  readonly perInstance = new Map<string, number>();
  /** Checks that this process accepted in place of Redis, by the same key. */
  readonly perLocalInstance = new Map<string, number>();
  longestMs = 0;

  constructor(
    readonly store: CheckedStore,
    /** One plan for every route, or one per route. */
    readonly plan: object,
    readonly account = 'acc',
  ) {}

  async check(route = 'route'): Promise<Outcome> {
    const before = performance.now();
    const outcome = await this.#outcome(route);
    this.longestMs = Math.max(this.longestMs, performance.now() - before);
    this.outcomes.push(outcome);
    return outcome;
  }

  count(...wanted: readonly Outcome[]): number {
    return this.outcomes.filter((outcome) => wanted.includes(outcome)).length;
  }

  async #outcome(route: string): Promise<Outcome> {
    try {
      const plan = 'windows' in this.plan ? this.plan : (this.plan as Readonly<Record<string, object>>)[route];
      const decision = await this.store.consume(this.account, route, plan as never, 1);
      const { accepted, degraded } = decision;
      if (accepted) count(decision, degraded ? this.perLocalInstance : this.perInstance);
      return `${degraded ? 'degraded-' : ''}${accepted ? 'accepted' : 'rejected'}`;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code === 'store_timeout' || code === 'store_unavailable') return code;
      throw error;
    }
  }
}

function count({ route, trace }: CheckDecision, counts: Map<string, number>): void {
  for (const { limit, durationMs, startedAt } of trace) {
    const instance = `${route} ${limit} ${durationMs} ${startedAt}`;
    counts.set(instance, (counts.get(instance) ?? 0) + 1);
  }
}

/** The accepted checks of several callers, by window instance. */
export function totals(callers: readonly { readonly perInstance: Iterable<[string, number]> }[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { perInstance } of callers)
    for (const [instance, count] of perInstance) sums.set(instance, (sums.get(instance) ?? 0) + count);
  return sums;
}

export interface LoadOptions {
  /** How many checks run at a time. */
  readonly inFlight?: number;
  /** Wait between a decision and the next check, in milliseconds. */
  readonly pauseMs?: number;
  /** Routes that are checked in turn. */
  readonly routes?: readonly string[];
}

/** Checks that continue until `stop`. */
export interface Load {
  readonly caller: Caller;
  /** Waits for the last decisions. Throws an unexpected error of a check. */
  stop(): Promise<void>;
}

export function startLoad(caller: Caller, { inFlight = 4, pauseMs = 5, routes = ['route'] }: LoadOptions = {}): Load {
  let isRunning = true;
  let checks = 0;
  const checkAgain = async (): Promise<void> => {
    while (isRunning) {
      await caller.check(routes[checks++ % routes.length]);
      await sleep(pauseMs);
    }
  };
  const all = Promise.all(Array.from({ length: inFlight }, checkAgain));
  // `stop` handles an error, but until then Node would report an unhandled rejection.
  all.catch(() => {});
  return {
    caller,
    async stop() {
      isRunning = false;
      await all;
    },
  };
}
