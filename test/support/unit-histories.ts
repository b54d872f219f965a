import fc from 'fast-check';
import { isHeadgateError } from '../../src/base/errors.ts';
import type { Decision, WindowStatus } from '../../src/core/decision.ts';
import { parseLimit } from '../../src/core/limit.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../../src/core/window-set.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import type { Limiter } from '../../src/limits/ports.ts';
import { assertEqual } from '../../src/testing/assert-equal.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { createModel, type Model, type ModelDecision } from '../../src/testing/model.ts';

/** In the order of checking. */
const UNITS = ['requests', 'bytes', 'tokens'] as const;
type Unit = (typeof UNITS)[number];
type Costs = { readonly [unit in Unit]?: number };
/** Windows of each unit: a max and a duration in milliseconds. */
type Windows = { readonly [unit in Unit]?: readonly (readonly [max: number, durationMs: number])[] };

type Command =
  | { readonly type: 'consume' | 'charge'; readonly account: string; readonly route: string; readonly cost: Costs }
  | { readonly type: 'settle'; readonly pick: number; readonly cost: Costs | number }
  | { readonly type: 'reset'; readonly account?: string; readonly route?: string }
  | { readonly type: 'advance'; readonly ms: number };

/** Limits with units, and what is done with them. */
export interface UnitHistory {
  readonly scope: AllMethodsScope;
  readonly allMethods: Windows;
  /** The limit of the route `r`. The route `s` has none. */
  readonly route: Windows;
  readonly commands: readonly Command[];
}

const ACCOUNTS = ['a', 'b'];
const ROUTES = ['r', 's'];

const window = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.constantFrom(20, 50, 200));
const windows = fc.record(
  Object.fromEntries(
    UNITS.map((unit) => [unit, fc.uniqueArray(window, { minLength: 1, maxLength: 2, selector: ([, ms]) => ms })]),
  ),
  { requiredKeys: [] },
) as fc.Arbitrary<Windows>;
const costs = (least: number) =>
  fc
    .record(Object.fromEntries(UNITS.map((unit) => [unit, fc.integer({ min: least, max: 4 })])), { requiredKeys: [] })
    .filter((cost) => Object.keys(cost).length > 0) as fc.Arbitrary<Costs>;
const account = fc.constantFrom(...ACCOUNTS);
const route = fc.constantFrom(...ROUTES);

const command: fc.Arbitrary<Command> = fc.oneof(
  { arbitrary: fc.record({ type: fc.constant('consume' as const), account, route, cost: costs(1) }), weight: 12 },
  {
    arbitrary: fc.record({
      type: fc.constant('settle' as const),
      pick: fc.nat(20),
      cost: fc.oneof(costs(0), fc.integer({ min: 0, max: 3 })),
    }),
    weight: 4,
  },
  { arbitrary: fc.record({ type: fc.constant('charge' as const), account, route, cost: costs(1) }), weight: 1 },
  {
    arbitrary: fc.record({ type: fc.constant('reset' as const), account, route }, { requiredKeys: ['type'] }),
    weight: 1,
  },
  { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.constantFrom(0, 1, 10, 20, 50) }), weight: 5 },
);

/** Random histories, in which some window of requests always applies. */
export const unitHistory: fc.Arbitrary<UnitHistory> = fc.record({
  scope: fc.constantFrom('route' as const, 'account' as const),
  allMethods: windows,
  route: windows,
  commands: fc.array(command, { minLength: 1, maxLength: 30, size: 'max' }),
});

/** Each unit by itself in a naive model of its own, joined by all or nothing. */
class UnitsModel {
  readonly #models: ReadonlyMap<Unit, Model>;
  readonly #windowSets = new Map<string, WindowSet>();

  constructor({ scope, allMethods, route }: UnitHistory, clock: FakeClock) {
    this.#models = new Map(UNITS.map((unit) => [unit, createModel(clock)]));
    for (const unit of UNITS) {
      const [own = [], all = []] = [route[unit], allMethods[unit]].map((list = []) =>
        parseLimit(list.map(([max, durationMs]) => ({ max, durationMs }))),
      );
      this.#windowSets.set(`${unit} r`, createWindowSet(own, all, scope));
      this.#windowSets.set(`${unit} s`, createWindowSet([], all, scope));
    }
  }

  /** The units whose windows apply to a route, in the order of checking. */
  #unitsOf(name: string): readonly Unit[] {
    return UNITS.filter((unit) => this.#setOf(unit, name).windows.length > 0);
  }

  /** Undefined if the cost names none of the windows. */
  consume(id: string, name: string, cost: Costs): UnitsDecision | undefined {
    const units = this.#unitsOf(name);
    const named = units.filter((unit) => cost[unit] !== undefined);
    if (named.length === 0) return units.length === 0 ? new UnitsDecision([]) : undefined;
    const parts: [Unit, ModelDecision][] = [];
    for (const unit of named) {
      const model = this.#models.get(unit) as Model;
      const decision = model.consume(id, name, this.#setOf(unit, name), cost[unit] as number);
      if (decision.accepted) {
        parts.push([unit, decision]);
        continue;
      }
      const undone = parts.map(([charged, before]): [Unit, ModelDecision] => {
        this.#models.get(charged)?.undo(before);
        // As a rejection shows the windows before the one that rejected.
        const trace = (this.#models.get(charged) as Model)
          .peek(id, name, this.#setOf(charged, name))
          .map((status) => (status.startedAt === undefined ? { ...status, resetMs: status.durationMs } : status));
        return [charged, { ...before, trace }];
      });
      return new UnitsDecision([...undone, [unit, decision]]);
    }
    return new UnitsDecision(parts);
  }

  settle({ parts, accepted }: UnitsDecision, cost: Costs | number): boolean {
    if (!accepted) return false;
    const final = (unit: Unit): number | undefined => {
      if (cost === 0) return 0;
      return typeof cost === 'number' ? (unit === 'requests' ? cost : undefined) : cost[unit];
    };
    return parts
      .map(([unit, decision]) => {
        const value = final(unit);
        return value !== undefined && (this.#models.get(unit) as Model).settle(decision, value);
      })
      .includes(true);
  }

  /** Whether the cost names one of the windows, or there are none. */
  charge(id: string, name: string, cost: Costs): boolean {
    const units = this.#unitsOf(name);
    const named = units.filter((unit) => cost[unit] !== undefined);
    for (const unit of named) this.#models.get(unit)?.charge(id, name, this.#setOf(unit, name), cost[unit] as number);
    return named.length > 0 || units.length === 0;
  }

  reset(target: { readonly account?: string; readonly route?: string }): void {
    for (const model of this.#models.values()) model.reset(target);
  }

  peek(id: string, name: string): readonly WindowStatus[] {
    return UNITS.flatMap((unit) =>
      (this.#models.get(unit) as Model).peek(id, name, this.#setOf(unit, name)).map((status) => inUnit(status, unit)),
    );
  }

  #setOf(unit: Unit, name: string): WindowSet {
    return this.#windowSets.get(`${unit} ${name}`) as WindowSet;
  }
}

class UnitsDecision {
  constructor(readonly parts: readonly (readonly [Unit, ModelDecision])[]) {}

  get accepted(): boolean {
    return this.parts.every(([, { accepted }]) => accepted);
  }

  /** What is compared. */
  toJSON() {
    const [first, last] = [this.parts[0], this.parts.at(-1)];
    const [unit, { shown }] = (this.accepted ? first : last) ?? ['requests', { shown: undefined }];
    return {
      accepted: this.accepted,
      shown: shown && inUnit(shown, unit as Unit),
      trace: this.parts.flatMap(([each, { trace }]) => trace.map((status) => inUnit(status, each))),
      impossible: last?.[1].impossible ?? false,
    };
  }
}

function inUnit(status: WindowStatus, unit: Unit): WindowStatus {
  return unit === 'requests' ? status : { ...status, unit };
}

function textsOf(limit: Windows): string[] {
  return UNITS.flatMap((unit) => (limit[unit] ?? []).map(([max, ms]) => `${max} ${unit}/${ms}ms`));
}

/** Whether the limits have a window: without one, they are refused. */
export function hasWindows({ allMethods, route: own }: UnitHistory): boolean {
  return [...textsOf(allMethods), ...textsOf(own)].length > 0;
}

/** Runs a history on a limiter with this store and on the model, and compares everything that they return. */
export async function runUnitHistory(store: LimitStore, clock: FakeClock, history: UnitHistory): Promise<void> {
  const { scope, allMethods, route: own } = history;
  const limiter = createLimiter({
    store,
    units: ['bytes', 'tokens'],
    limits: { allMethods: { windows: textsOf(allMethods), scope }, routes: { r: textsOf(own) } },
    validate: false,
  });
  const model = new UnitsModel(history, clock);
  const decisions: { readonly actual: Decision; readonly expected: UnitsDecision }[] = [];
  for (const [step, each] of history.commands.entries()) {
    try {
      await run(limiter, model, clock, decisions, each);
    } catch (error) {
      throw new Error(`step ${step}, ${JSON.stringify(each)}`, { cause: error });
    }
  }
}

async function run(
  limiter: Limiter,
  model: UnitsModel,
  clock: FakeClock,
  decisions: { readonly actual: Decision; readonly expected: UnitsDecision }[],
  each: Command,
): Promise<void> {
  if (each.type === 'advance') return clock.advance(each.ms);
  if (each.type === 'reset') {
    const { type: _, ...target } = each;
    await limiter.reset(target);
    return model.reset(target);
  }
  if (each.type === 'settle') {
    const picked = decisions[each.pick % Math.max(1, decisions.length)];
    if (picked === undefined) return;
    // An instance that was settled to 0 in the millisecond of its start looks as if a rejected request had started it.
    clock.advance(1);
    const cost = each.cost as number | Record<string, number>;
    assertEqual(await limiter.settle(picked.actual, cost), model.settle(picked.expected, each.cost));
    return comparePeeks(limiter, model, picked.actual.account);
  }
  const cost = each.cost as Record<string, number>;
  const request = { account: each.account, route: each.route, cost };
  if (each.type === 'charge') {
    const charged = await limiter.charge(request).catch(onlyCostError);
    assertEqual(charged !== undefined, model.charge(each.account, each.route, each.cost));
    return comparePeeks(limiter, model, each.account);
  }
  const actual = await limiter.consume(request).catch(onlyCostError);
  const expected = model.consume(each.account, each.route, each.cost);
  assertEqual(actual === undefined, expected === undefined);
  if (actual === undefined || expected === undefined) return;
  const { accepted, shown, trace, impossible } = actual;
  assertEqual({ accepted, shown, trace, impossible }, expected.toJSON());
  decisions.push({ actual, expected });
  return comparePeeks(limiter, model, each.account);
}

async function comparePeeks(limiter: Limiter, model: UnitsModel, id: string): Promise<void> {
  for (const name of ROUTES) assertEqual(await limiter.peek({ account: id, route: name }), model.peek(id, name));
}

function onlyCostError(error: unknown): undefined {
  if (!isHeadgateError(error, 'invalid_cost')) throw error;
}
