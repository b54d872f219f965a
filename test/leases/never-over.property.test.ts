/** S32: random histories of a fleet with leases. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { getOrCreate } from '../../src/base/get-or-create.ts';
import type { FreshStart } from '../../src/core/block.ts';
import type { Decision } from '../../src/core/decision.ts';
import { createWindowSet, type WindowSet, withMaxes } from '../../src/core/window-set.ts';
import { type Fate, Fleet, type Process, settled } from '../support/leases/fleet.ts';

const LEASE_MS = 64;
const FRESH: FreshStart = { longestMs: 10_000 };
const RUNS = NIGHTLY ? 50_000 : 150;

type Step =
  | { type: 'requests'; process: number; account: string; route: string; isBulk: boolean; cost: number; count: number }
  | { type: 'settle'; process: number; pick: number; cost: number }
  | { type: 'charge'; process: number; account: string; route: string }
  | { type: 'adjust'; process: number; pick: number }
  | { type: 'reset'; process: number; account: string | undefined; route: string | undefined }
  | { type: 'block'; process: number; account: string; route: string | undefined; forMs: number; isFresh: boolean }
  | { type: 'advance'; ms: number }
  | { type: 'fate'; process: number; fate: Fate }
  | { type: 'release'; process: number; pick: number; fate: Fate }
  | { type: 'state'; process: number; state: Process['state'] }
  | { type: 'wall step'; process: number; ms: number }
  | { type: 'crash'; process: number };

const account = fc.constantFrom('a', 'b');
const route = fc.constantFrom('r', 's');
const processIndex = fc.nat(4);
const quietSteps = (): fc.WeightedArbitrary<Step>[] => [
  {
    arbitrary: fc.record({
      type: fc.constant('requests' as const),
      process: processIndex,
      account,
      route,
      isBulk: fc.boolean(),
      cost: fc.oneof(
        { arbitrary: fc.constant(1), weight: 4 },
        { arbitrary: fc.integer({ min: 2, max: 4 }), weight: 1 },
      ),
      count: fc.integer({ min: 1, max: 12 }),
    }),
    weight: 30,
  },
  {
    arbitrary: fc.record({
      type: fc.constant('settle' as const),
      process: processIndex,
      pick: fc.nat(60),
      cost: fc.nat(3),
    }),
    weight: 6,
  },
  { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(LEASE_MS / 2) }), weight: 14 },
];
const otherSteps = (): fc.WeightedArbitrary<Step>[] => [
  { arbitrary: fc.record({ type: fc.constant('charge' as const), process: processIndex, account, route }), weight: 1 },
  { arbitrary: fc.record({ type: fc.constant('adjust' as const), process: processIndex, pick: fc.nat(3) }), weight: 2 },
  {
    arbitrary: fc.record({
      type: fc.constant('reset' as const),
      process: processIndex,
      account: fc.option(account, { nil: undefined }),
      route: fc.option(route, { nil: undefined }),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      type: fc.constant('block' as const),
      process: processIndex,
      account,
      route: fc.option(route, { nil: undefined }),
      forMs: fc.integer({ min: 1, max: 40 }),
      isFresh: fc.boolean(),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(300) }), weight: 2 },
];
const fate = fc.constantFrom<Fate>('twice', 'lost', 'no answer', 'waits', 'answer waits');
const faults = (): fc.WeightedArbitrary<Step>[] => [
  { arbitrary: fc.record({ type: fc.constant('fate' as const), process: processIndex, fate }), weight: 10 },
  {
    arbitrary: fc.record({
      type: fc.constant('release' as const),
      process: processIndex,
      pick: fc.nat(9),
      fate: fc.oneof(fc.constant<Fate>('at once'), fate),
    }),
    weight: 8,
  },
  {
    arbitrary: fc.record({
      type: fc.constant('state' as const),
      process: processIndex,
      state: fc.constantFrom('running' as const, 'stopped' as const, 'suspended' as const),
    }),
    weight: 4,
  },
  {
    arbitrary: fc.record({
      type: fc.constant('wall step' as const),
      process: processIndex,
      ms: fc.integer({ min: -500, max: 500 }),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ type: fc.constant('crash' as const), process: processIndex }), weight: 2 },
];

const window = fc.record({ max: fc.integer({ min: 0, max: 60 }), durationMs: fc.constantFrom(40, 100, 400, 3_000) });
const limit = fc
  .uniqueArray(window, { maxLength: 2, selector: ({ durationMs }) => durationMs })
  .map((windows) => windows.sort((one, other) => one.durationMs - other.durationMs));
const windowSets = fc.array(
  fc
    .tuple(limit, limit, fc.constantFrom('route' as const, 'account' as const))
    .map(([ofRoute, allMethods, scope]) => createWindowSet(ofRoute, allMethods, scope)),
  { minLength: 1, maxLength: 3 },
);
const historyOf = (steps: fc.WeightedArbitrary<Step>[]) =>
  fc.record({
    processes: fc.integer({ min: 2, max: 5 }),
    windowSets,
    steps: fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 80, size: 'max' }),
  });
type History = typeof historyOf extends (...args: never[]) => fc.Arbitrary<infer Value> ? Value : never;

/** A window instance, and what requests were admitted by it; the same of those of the lane (S28). */
interface Instance {
  admitted: number;
  max: number;
  bulk: number;
  bulkMax: number;
}

/** Stores cache by the identity of a window set. */
const inBulk = new WeakMap<WindowSet, WindowSet>();
const bulkOf = (windowSet: WindowSet): WindowSet =>
  getOrCreate(inBulk, windowSet, () => withMaxes(windowSet, (max) => Math.floor(max / 2), 'bulk'));

class HistoryOfFleet {
  readonly fleet: Fleet;
  readonly #history: History;
  readonly #windowSets: WindowSet[];
  readonly #instances = new Map<string, Instance>();
  readonly #decisions: { readonly process: Process; readonly decision: Decision; cost: number }[] = [];
  /** Their wall clocks do not show how long the machine was suspended. */
  readonly #setBack = new WeakSet<Process>();
  readonly #problems: unknown[] = [];

  constructor(history: History) {
    this.#history = history;
    this.fleet = new Fleet(history.processes, LEASE_MS);
    this.#windowSets = this.fleet.processes.map(() => history.windowSets[0] as WindowSet);
  }

  async run(): Promise<void> {
    for (const step of this.#history.steps) await this.#step(step);
    expect(this.#problems).toEqual([]);
  }

  async #step(step: Step): Promise<void> {
    if (step.type === 'advance') return this.fleet.advance(step.ms);
    const index = step.process % this.fleet.processes.length;
    const process = this.fleet.processes[index] as Process;
    if (step.type === 'crash') return this.fleet.crash(index);
    if (step.type === 'state') {
      process.state = step.state;
      return;
    }
    if (step.type === 'wall step') {
      process.wallStep += step.ms;
      if (step.ms < 0) this.#setBack.add(process);
      return;
    }
    if (step.type === 'fate') {
      process.fate = step.fate;
      return;
    }
    if (process.state !== 'running') return;
    switch (step.type) {
      case 'requests':
        for (let i = 0; i < step.count; i++)
          await this.#request(index, process, step.account, step.route, step.cost, step.isBulk);
        return;
      case 'settle':
        return this.#settle(process, step.pick, step.cost);
      case 'release':
        return process.release(step.pick, step.fate);
      case 'charge':
        return this.#change(() => process.store.charge?.(step.account, step.route, this.#windowSetOf(index), 1));
      case 'adjust':
        this.#windowSets[index] = this.#history.windowSets[step.pick % this.#history.windowSets.length] as WindowSet;
        return;
      case 'reset':
        return this.#change(() => process.store.reset({ account: step.account, route: step.route }));
      case 'block': {
        const rest = step.isFresh ? [FRESH] : [];
        return this.#change(() => process.store.block?.(step, { forMs: step.forMs }, ...rest));
      }
    }
  }

  #windowSetOf(index: number): WindowSet {
    return this.#windowSets[index] as WindowSet;
  }

  async #request(
    index: number,
    process: Process,
    account: string,
    route: string,
    cost: number,
    isBulk: boolean,
  ): Promise<void> {
    const windowSet = isBulk ? bulkOf(this.#windowSetOf(index)) : this.#windowSetOf(index);
    try {
      const decided = process.store.consume(account, route, windowSet, cost);
      if (!(decided instanceof Promise)) return this.#decided(process, decided);
      decided.then(
        (decision) => this.#decided(process, decision),
        () => {},
      );
      await settled();
    } catch (error) {
      this.#problems.push(error);
    }
  }

  #decided(process: Process, decision: Decision): void {
    if (!decision.accepted || !this.fleet.processes.includes(process)) return;
    this.#decisions.push({ process, decision, cost: decision.cost });
    // A decision shows no instance if it came after the end.
    if (decision.trace.some(({ startedAt }) => startedAt === undefined) && !this.#setBack.has(process))
      this.#problems.push({ late: decision.toJSON() });
    for (const key of this.#keysOf(decision)) {
      const instance = this.#instances.get(key.name) ?? { admitted: 0, max: 0, bulk: 0, bulkMax: 0 };
      instance.admitted += decision.cost;
      instance.max = Math.max(instance.max, key.max);
      if (decision.lane !== undefined) {
        instance.bulk += decision.cost;
        instance.bulkMax = Math.max(instance.bulkMax, key.max);
      }
      this.#instances.set(key.name, instance);
      if (instance.admitted > instance.max || instance.bulk > instance.bulkMax)
        this.#problems.push({ over: key.name, ...instance });
      if (decision.leased && this.fleet.now >= key.end && !this.#setBack.has(process))
        this.#problems.push({ late: key.name });
    }
  }

  #keysOf({ account, route, trace, windowSet }: Decision): { name: string; max: number; end: number }[] {
    return trace.map(({ limit, durationMs, startedAt = Number.NaN, max }) => {
      const isShared = limit === 'all-methods' && windowSet.allMethodsScope === 'account';
      const name = JSON.stringify([account, isShared ? null : route, limit, durationMs, startedAt]);
      return { name, max, end: startedAt + durationMs };
    });
  }

  async #settle(process: Process, pick: number, cost: number): Promise<void> {
    const own = this.#decisions.filter((each) => each.process === process && each.cost === each.decision.cost);
    const settling = own[pick % own.length];
    if (settling === undefined) return;
    const { decision } = settling;
    settling.cost = Math.min(cost, decision.cost - 1);
    // What the request did not use was not admitted, whether the store learns of it or not.
    for (const { name } of this.#keysOf(decision)) {
      const instance = this.#instances.get(name) as Instance;
      instance.admitted -= decision.cost - settling.cost;
      if (decision.lane !== undefined) instance.bulk -= decision.cost - settling.cost;
    }
    await this.#change(() => process.store.settle(decision, settling.cost));
  }

  async #change(change: () => unknown): Promise<void> {
    void Promise.resolve(change()).catch(() => {});
    await settled();
  }

  /** After the last lease is over, each active instance has counted what it admitted, and nothing else. */
  async expectNothingStranded(): Promise<void> {
    await this.fleet.advance(LEASE_MS + 1);
    for (const account of ['a', 'b']) for (const route of ['r', 's']) this.#expectCounts(account, route);
    for (const { leases } of this.fleet.processes) {
      const { leased, used, givenBack, lost, held } = leases.stats();
      expect({ held, lost, sum: used + givenBack }).toEqual({ held: 0, lost: 0, sum: leased });
    }
  }

  #expectCounts(account: string, route: string): void {
    const windowSet = this.#history.windowSets[0] as WindowSet;
    for (const { limit, durationMs, startedAt, max, remaining } of this.fleet.store.peek(account, route, windowSet)) {
      if (startedAt === undefined) continue;
      const isShared = limit === 'all-methods' && windowSet.allMethodsScope === 'account';
      const name = JSON.stringify([account, isShared ? null : route, limit, durationMs, startedAt]);
      expect([name, max - remaining]).toEqual([name, this.#instances.get(name)?.admitted ?? 0]);
    }
  }
}

describe('S32: a fleet with leases', () => {
  it('never admits more than a window instance has room for, whatever crashes, stops, is lost or repeated', async () => {
    await fc.assert(
      fc.asyncProperty(historyOf([...quietSteps(), ...otherSteps(), ...faults()]), (history) =>
        new HistoryOfFleet(history).run(),
      ),
      { numRuns: RUNS },
    );
  });

  it('leaves nothing charged that was not admitted, once the last lease is over', async () => {
    let decisions = 0;
    await fc.assert(
      fc.asyncProperty(historyOf(quietSteps()), async (history) => {
        const run = new HistoryOfFleet(history);
        await run.run();
        await run.expectNothingStranded();
        for (const { leases } of run.fleet.processes) decisions += leases.stats().decisions;
      }),
      { numRuns: RUNS },
    );
    // The histories do what they are about.
    expect(decisions).toBeGreaterThan(RUNS * 10);
  });
});
