import { setTimeout as sleep } from 'node:timers/promises';
import type { Decision } from '../../src/core/decision.ts';
import { isHeadgateError } from '../../src/core/errors.ts';
import type { Plan } from '../../src/core/plan.ts';
import type { RedisStore } from '../../src/stores/redis/limits.ts';

/** How one check was answered. */
export type Outcome =
  | 'accepted'
  | 'rejected'
  | 'degraded-accepted'
  | 'degraded-rejected'
  | 'store_timeout'
  | 'store_unavailable';

export const HEALTHY: readonly Outcome[] = ['accepted', 'rejected'];

/** Asks, and keeps count of the answers, of the longest wait, and of what each window instance has let through. */
export class Caller {
  readonly outcomes: Outcome[] = [];
  /** Accepted by Redis, by route, limit, duration and start of the window. */
  readonly perInstance = new Map<string, number>();
  /** Accepted in its place by this process, likewise. */
  readonly perLocalInstance = new Map<string, number>();
  longestMs = 0;

  constructor(
    readonly store: RedisStore,
    /** Of every route, or of each. */
    readonly plan: Plan | Readonly<Record<string, Plan>>,
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
      const plan = 'windows' in this.plan ? (this.plan as Plan) : (this.plan[route] as Plan);
      const decision = await this.store.consume(this.account, route, plan, 1);
      const { accepted, degraded } = decision;
      if (accepted) note(decision, degraded ? this.perLocalInstance : this.perInstance);
      return `${degraded ? 'degraded-' : ''}${accepted ? 'accepted' : 'rejected'}`;
    } catch (error) {
      if (isHeadgateError(error, 'store_timeout')) return 'store_timeout';
      if (isHeadgateError(error, 'store_unavailable')) return 'store_unavailable';
      throw error;
    }
  }
}

function note({ route, trace }: Decision, counts: Map<string, number>): void {
  for (const { limit, durationMs, startedAt } of trace) {
    const instance = `${route} ${limit} ${durationMs} ${startedAt}`;
    counts.set(instance, (counts.get(instance) ?? 0) + 1);
  }
}

/** Counts of several callers, by window instance. */
export function totals(callers: readonly { readonly perInstance: Iterable<[string, number]> }[]): Map<string, number> {
  const sums = new Map<string, number>();
  for (const { perInstance } of callers)
    for (const [instance, count] of perInstance) sums.set(instance, (sums.get(instance) ?? 0) + count);
  return sums;
}

export interface LoadOptions {
  /** How many ask at a time. */
  readonly inFlight?: number;
  /** How long each waits between an answer and its next question. */
  readonly pauseMs?: number;
  /** Asked in turn. */
  readonly routes?: readonly string[];
}

/** Callers that go on asking. */
export interface Load {
  readonly caller: Caller;
  /** Waits for the last answers. An error that no caller should see is thrown here. */
  stop(): Promise<void>;
}

export function startLoad(caller: Caller, { inFlight = 4, pauseMs = 5, routes = ['route'] }: LoadOptions = {}): Load {
  let goesOn = true;
  let asked = 0;
  const ask = async (): Promise<void> => {
    while (goesOn) {
      await caller.check(routes[asked++ % routes.length]);
      await sleep(pauseMs);
    }
  };
  const all = Promise.all(Array.from({ length: inFlight }, ask));
  // Heard when it is stopped, which is too late for Node.
  all.catch(() => {});
  return {
    caller,
    async stop() {
      goesOn = false;
      await all;
    },
  };
}
