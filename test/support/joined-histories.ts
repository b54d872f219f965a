import fc from 'fast-check';
import { expect } from 'vitest';
import type { Decision, Limiter, Limits } from '../../src/index.ts';
import { groupAccount } from '../../src/limits/index.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';

const UNITS = ['requests', 'tokens'] as const;
const GROUPS = ['customer', 'key'] as const;
const LANES = ['bulk', 'batch'] as const;
const ROUTE = 'r';
const SHORT_MS = 40;
const LONG_MS = 300;

type Unit = (typeof UNITS)[number];
type Lane = (typeof LANES)[number] | undefined;
type Costs = { readonly [name in Unit]?: number | undefined };

/** A window of the model. */
interface Window {
  readonly unit: Unit;
  readonly max: number;
  readonly durationMs: number;
}

interface Limit {
  readonly windows: readonly Window[];
  /** Undefined: no bound. */
  readonly inFlight: number | undefined;
}

/** The limits of one subject. */
interface Layer {
  readonly allMethods: Limit;
  readonly scope: 'route' | 'account';
  /** Of the route {@link ROUTE}. */
  readonly route: Limit;
}

export type JoinedStep =
  | {
      readonly type: 'consume';
      readonly account: string;
      readonly route: string;
      readonly lane: Lane;
      readonly customer: string | undefined;
      readonly key: string | undefined;
      readonly costs: Costs;
    }
  | { readonly type: 'settle'; readonly pick: number; readonly costs: Costs }
  | { readonly type: 'refund'; readonly pick: number }
  | { readonly type: 'release'; readonly pick: number }
  | { readonly type: 'advance'; readonly ms: number };

/** Requests of accounts in groups and lanes, which cost requests and tokens, and run for a while. */
export interface JoinedHistory {
  /** In hundredths. */
  readonly lanes: { readonly [name in (typeof LANES)[number]]: number };
  readonly account: Layer;
  readonly groups: { readonly [name in (typeof GROUPS)[number]]: Layer };
  readonly steps: readonly JoinedStep[];
}

const max = fc.oneof(fc.nat(8), fc.nat(40));
const windowOf = (unit: Unit, durationMs: number): fc.Arbitrary<Window> =>
  fc.record({ unit: fc.constant(unit), max, durationMs: fc.constant(durationMs) });
const bound = fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined });
const limitOf = (windows: readonly fc.Arbitrary<Window>[]): fc.Arbitrary<Limit> =>
  fc.record({ windows: fc.tuple(...windows), inFlight: bound });
const layer: fc.Arbitrary<Layer> = fc.record({
  allMethods: limitOf([windowOf('requests', LONG_MS), windowOf('tokens', SHORT_MS), windowOf('tokens', LONG_MS)]),
  scope: fc.constantFrom('route' as const, 'account' as const),
  route: limitOf([windowOf('requests', SHORT_MS), windowOf('tokens', SHORT_MS)]),
});
const units = fc.oneof(
  { arbitrary: fc.constant(1), weight: 3 },
  { arbitrary: fc.integer({ min: 1, max: 7 }), weight: 2 },
);
const finalCost = fc.option(fc.nat(9), { nil: undefined });
const step: fc.Arbitrary<JoinedStep> = fc.oneof(
  {
    arbitrary: fc.record({
      type: fc.constant('consume' as const),
      account: fc.constantFrom('a', 'b'),
      route: fc.constantFrom(ROUTE, 's'),
      lane: fc.constantFrom<Lane>(undefined, undefined, 'bulk', 'batch'),
      customer: fc.constantFrom(undefined, 'c', 'd'),
      key: fc.constantFrom(undefined, 'k'),
      costs: fc.record({ requests: fc.constant(1), tokens: fc.option(units, { nil: undefined }) }),
    }),
    weight: 24,
  },
  {
    arbitrary: fc.record({
      type: fc.constant('settle' as const),
      pick: fc.nat(40),
      costs: fc
        .record({ requests: finalCost, tokens: finalCost })
        .filter((costs) => costs.requests !== undefined || costs.tokens !== undefined),
    }),
    weight: 5,
  },
  { arbitrary: fc.record({ type: fc.constant('refund' as const), pick: fc.nat(40) }), weight: 2 },
  { arbitrary: fc.record({ type: fc.constant('release' as const), pick: fc.nat(40) }), weight: 8 },
  { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(50) }), weight: 4 },
);

export const joinedHistories: fc.Arbitrary<JoinedHistory> = fc.record({
  lanes: fc.record({ bulk: fc.integer({ min: 1, max: 100 }), batch: fc.integer({ min: 1, max: 100 }) }),
  account: layer,
  groups: fc.record({ customer: layer, key: layer }),
  steps: fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }),
});

/** The limits of a history, as a user writes them. */
export function joinedLimits({ account, groups, lanes }: JoinedHistory): Limits {
  const textsOf = ({ windows }: Limit) =>
    windows.map(({ unit, max, durationMs }) => `${max}${unit === 'requests' ? '' : ` ${unit}`}/${durationMs}ms`);
  const boundOf = ({ inFlight }: Limit) => (inFlight === undefined ? {} : { inFlight });
  const layerOf = ({ allMethods, scope, route }: Layer) => ({
    allMethods: { windows: textsOf(allMethods), scope, ...boundOf(allMethods) },
    routes: { [ROUTE]: { windows: textsOf(route), ...boundOf(route) } },
  });
  return {
    default: layerOf(account),
    groups: { customer: layerOf(groups.customer), key: layerOf(groups.key) },
    lanes: { bulk: lanes.bulk / 100, batch: lanes.batch / 100 },
  };
}

/** A window, whose counter it is, and how much fits into it. */
interface Counted extends Window {
  readonly id: string;
  readonly limit: 'route' | 'all-methods';
}

/** What an accepted request charged, and has not settled. */
interface Charge {
  readonly id: string;
  readonly unit: Unit;
  readonly durationMs: number;
  readonly startedAt: number;
  readonly cost: number;
}

interface Accepted {
  readonly decision: Decision;
  readonly charges: readonly Charge[];
  /** Units of each subject that were settled. */
  readonly settled: Set<string>;
  slots: readonly string[];
}

/**
 * Every rule by itself, joined by all or nothing: a request must fit each window of each unit that it costs, of its
 * account and of its groups, and find room among the requests in flight. In a lane each max is a share.
 */
class NaiveLimits {
  readonly #history: JoinedHistory;
  readonly #clock: FakeClock;
  readonly #counters = new Map<string, { startedAt: number; count: number }>();
  readonly #running: string[] = [];

  constructor(history: JoinedHistory, clock: FakeClock) {
    this.#history = history;
    this.#clock = clock;
  }

  /** The windows of a subject; the counter of a window depends on neither its max nor the lane. */
  windowsOf(subject: string, account: string, route: string, lane: Lane): readonly Counted[] {
    const { allMethods, scope, route: own } = this.#layerOf(subject);
    const counted = (limit: Counted['limit'], windows: readonly Window[], place: string): Counted[] =>
      windows.map((window) => ({
        ...window,
        limit,
        max: this.#share(window.max, lane),
        id: JSON.stringify([account, place, limit, window.unit, window.durationMs]),
      }));
    return [
      ...(route === ROUTE ? counted('route', own.windows, route) : []),
      ...counted('all-methods', allMethods.windows, scope === 'account' ? '' : route),
    ];
  }

  countOf({ id, durationMs }: Pick<Counted, 'id' | 'durationMs'>): number {
    return this.#instanceOf(id, durationMs)?.count ?? 0;
  }

  /** @returns undefined if the request is rejected; then nothing changed */
  consume(
    subjects: readonly (readonly [subject: string, account: string])[],
    { route, lane, costs }: Extract<JoinedStep, { type: 'consume' }>,
  ): Omit<Accepted, 'decision'> | undefined {
    const windows = subjects.flatMap(([subject, account]) => this.windowsOf(subject, account, route, lane));
    const charged = windows.filter(({ unit }) => costs[unit] !== undefined);
    const slots = subjects.flatMap(([subject, account]) => this.#slotsOf(subject, account, route, lane));
    const fits =
      charged.every((window) => this.countOf(window) + (costs[window.unit] as number) <= window.max) &&
      slots.every(({ id, max }) => this.#running.filter((each) => each === id).length < max);
    if (!fits) return undefined;
    const charges = charged.map(({ id, unit, durationMs }): Charge => {
      const cost = costs[unit] as number;
      const instance = this.#instanceOf(id, durationMs) ?? { startedAt: this.#clock.now(), count: 0 };
      instance.count += cost;
      this.#counters.set(id, instance);
      return { id, unit, durationMs, startedAt: instance.startedAt, cost };
    });
    this.#running.push(...slots.map(({ id }) => id));
    return { charges, settled: new Set(), slots: slots.map(({ id }) => id) };
  }

  settle({ charges, settled }: Accepted, costs: Costs): void {
    for (const { id, unit, durationMs, startedAt, cost } of charges) {
      const final = costs[unit];
      const instance = this.#instanceOf(id, durationMs);
      if (final === undefined || instance?.startedAt !== startedAt || settled.has(unit)) continue;
      instance.count = Math.max(0, instance.count + final - cost);
    }
    for (const unit of UNITS) if (costs[unit] !== undefined) settled.add(unit);
  }

  release(accepted: Accepted): void {
    for (const id of accepted.slots) this.#running.splice(this.#running.indexOf(id), 1);
    accepted.slots = [];
  }

  #layerOf(subject: string): Layer {
    return subject === 'account' ? this.#history.account : this.#history.groups[subject as (typeof GROUPS)[number]];
  }

  #share(max: number, lane: Lane): number {
    return lane === undefined ? max : Math.floor((max * this.#history.lanes[lane]) / 100);
  }

  #slotsOf(subject: string, account: string, route: string, lane: Lane): { id: string; max: number }[] {
    const { allMethods, route: own } = this.#layerOf(subject);
    const bounds = [
      [`${account} of ${route}`, route === ROUTE ? own.inFlight : undefined] as const,
      [account, allMethods.inFlight] as const,
    ];
    // A part of one request is none at all.
    const most = (bound: number): number => Math.max(1, this.#share(bound, lane));
    return bounds.flatMap(([id, bound]) => (bound === undefined ? [] : [{ id, max: most(bound) }]));
  }

  #instanceOf(id: string, durationMs: number): { startedAt: number; count: number } | undefined {
    const instance = this.#counters.get(id);
    return instance === undefined || this.#clock.now() >= instance.startedAt + durationMs ? undefined : instance;
  }
}

/** Without the units that cost nothing. */
const named = (costs: Costs): Record<string, number> => JSON.parse(JSON.stringify(costs)) as Record<string, number>;

/**
 * Runs a history on a limiter and on the naive limits.
 * @param every after so many steps, and at the end, every window must have the same count
 */
export async function expectJoined(
  history: JoinedHistory,
  limiter: Limiter,
  clock: FakeClock,
  every = 1,
): Promise<void> {
  const naive = new NaiveLimits(history, clock);
  const accepted: Accepted[] = [];
  const subjects = new Map<string, string>();
  const run = async (step: JoinedStep): Promise<void> => {
    if (step.type === 'advance') return clock.advance(step.ms);
    if (step.type === 'consume') {
      const { account, route, lane, customer, key, costs } = step;
      const groups = { ...(customer !== undefined && { customer }), ...(key !== undefined && { key }) };
      const asked = [
        ['account', account],
        ...Object.entries(groups).map(([name, id]) => [name, groupAccount(name, id)]),
      ];
      for (const [subject, counted] of asked) subjects.set(counted as string, subject as string);
      const decision = await limiter.consume({ account, route, lane, groups, cost: named(costs) });
      const expected = naive.consume(asked as [string, string][], step);
      expect(decision.degraded).toBe(false);
      expect(decision.lane).toBe(lane);
      expect(decision.accepted).toBe(expected !== undefined);
      if (expected !== undefined) accepted.push({ decision, ...expected });
      else expect(asked.map(([subject]) => subject)).toContain(decision.rejectedBy);
      return;
    }
    const picked = accepted[step.pick % accepted.length];
    if (picked === undefined) return;
    if (step.type === 'release') {
      expect(await limiter.release(picked.decision)).toBe(picked.slots.length > 0);
      naive.release(picked);
    } else {
      // An instance that was settled to 0 in the millisecond of its start looks as if a rejected request had started it.
      clock.advance(1);
      const costs = step.type === 'refund' ? { requests: 0, tokens: 0 } : step.costs;
      await (step.type === 'refund' ? limiter.refund(picked.decision) : limiter.settle(picked.decision, named(costs)));
      naive.settle(picked, costs);
    }
  };
  for (const [at, step] of history.steps.entries())
    try {
      await run(step);
      const isChecked = (at + 1) % every === 0 || at + 1 === history.steps.length;
      for (const [account, subject] of isChecked ? subjects : []) await expectCounts(account, subject, limiter, naive);
    } catch (cause) {
      throw new Error(`step ${at}: ${JSON.stringify(step)}`, { cause });
    }
}

async function expectCounts(account: string, subject: string, limiter: Limiter, naive: NaiveLimits): Promise<void> {
  for (const route of [ROUTE, 's']) {
    const windows = await limiter.peek({ account, route });
    const counts = windows.map(({ limit, unit = 'requests', durationMs, max, remaining }) => [
      ...[limit, unit, durationMs],
      max - remaining,
    ]);
    const expected = naive
      .windowsOf(subject, account, route, undefined)
      .map((window) => [window.limit, window.unit, window.durationMs, Math.min(window.max, naive.countOf(window))]);
    expect(counts.sort()).toEqual(expected.sort());
  }
}
