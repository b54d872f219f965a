import fc from 'fast-check';
import { expect } from 'vitest';
import type { AdjustTarget } from '../../src/core/adjustment.ts';
import type { Decision } from '../../src/core/decision.ts';
import { createWindowSet, type WindowSet } from '../../src/core/window-set.ts';
import type { Limiter } from '../../src/index.ts';
import type { LimitSet } from '../../src/limits/index.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { createModel, type ModelDecision } from '../../src/testing/model.ts';

/** A window as plain numbers: the max and the milliseconds. */
type Window = readonly [max: number, durationMs: number];

type Step =
  | { type: 'consume'; account: string; route: string; lane: string | undefined; cost: number }
  | { type: 'peek'; account: string; route: string; lane: string | undefined }
  | { type: 'settle'; pick: number; cost: number }
  | { type: 'adjust'; isOfRoute: boolean; max: number }
  | { type: 'advance'; ms: number };

export interface LaneHistory {
  /** The shares of the lanes in hundredths. */
  readonly lanes: { readonly bulk: number; readonly batch: number };
  readonly ofRoute: Window;
  readonly allMethods: readonly [Window, Window];
  readonly scope: 'route' | 'account';
  readonly steps: readonly Step[];
}

const ROUTE = 'r';
const account = fc.constantFrom('a', 'b');
const route = fc.constantFrom(ROUTE, 's');
const lane = fc.constantFrom(undefined, undefined, 'bulk', 'bulk', 'batch');
const hundredths = fc.integer({ min: 1, max: 100 });
const max = fc.oneof(fc.nat(30), fc.constantFrom(100, 1_000, Number.MAX_SAFE_INTEGER));

/** @param isTimed whether the clock moves: a real one does not obey */
export function laneHistories(isTimed: boolean): fc.Arbitrary<LaneHistory> {
  const [short, long] = isTimed ? [40, 300] : [3_600_000, 86_400_000];
  const steps: fc.WeightedArbitrary<Step>[] = [
    {
      arbitrary: fc.record({
        type: fc.constant('consume' as const),
        account,
        route,
        lane,
        cost: fc.oneof(
          { arbitrary: fc.constant(1), weight: 3 },
          { arbitrary: fc.integer({ min: 1, max: 9 }), weight: 1 },
        ),
      }),
      weight: 24,
    },
    { arbitrary: fc.record({ type: fc.constant('peek' as const), account, route, lane }), weight: 2 },
    { arbitrary: fc.record({ type: fc.constant('settle' as const), pick: fc.nat(40), cost: fc.nat(12) }), weight: 4 },
    { arbitrary: fc.record({ type: fc.constant('adjust' as const), isOfRoute: fc.boolean(), max }), weight: 1 },
  ];
  if (isTimed)
    steps.push({ arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(60) }), weight: 4 });
  return fc.record({
    lanes: fc.record({ bulk: hundredths, batch: hundredths }),
    ofRoute: fc.tuple(max, fc.constant(short)),
    allMethods: fc.tuple(fc.tuple(max, fc.constant(short)), fc.tuple(max, fc.constant(long))),
    scope: fc.constantFrom('route' as const, 'account' as const),
    steps: fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 60, size: 'max' }),
  });
}

/** Decides the requests of a history. */
export interface LaneSubject {
  readonly limiter: Limiter;
  adjust(target: AdjustTarget, windows: readonly string[]): unknown;
}

/** The limits of a history, as a user writes them. */
export function limitsOf({ lanes, ofRoute, allMethods, scope }: LaneHistory): LimitSet {
  return {
    allMethods: { windows: allMethods.map(textOf), scope },
    routes: { [ROUTE]: [textOf(ofRoute)] },
    lanes: { bulk: lanes.bulk / 100, batch: lanes.batch / 100 },
  };
}

const textOf = ([max, durationMs]: Window): string => `${max}/${durationMs}ms`;

/**
 * Runs a history on a limiter and on the naive model, to which a lane is other maxes of the same windows.
 * @param clock of both; undefined if the limiter's clock is real, so that neither times nor cached rejections are compared
 */
export async function expectLanes(history: LaneHistory, subject: LaneSubject, clock: FakeClock | undefined) {
  const model = createModel(clock ?? { now: () => 0 });
  let { ofRoute, allMethods } = history;
  const windowSetOf = (named: string, ofLane: string | undefined): WindowSet => {
    const share = ofLane === undefined ? 100 : history.lanes[ofLane as 'bulk' | 'batch'];
    // Whole numbers of any size: no rounding of binary fractions.
    const windows = (limit: readonly Window[]) =>
      limit.map(([whole, durationMs]) => ({ max: Number((BigInt(whole) * BigInt(share)) / 100n), durationMs }));
    return createWindowSet(named === ROUTE ? windows([ofRoute]) : [], windows(allMethods), history.scope);
  };
  const decisions: { readonly actual: Decision; readonly expected: ModelDecision }[] = [];
  const run = async (step: Step): Promise<void> => {
    switch (step.type) {
      case 'consume': {
        const { type: _, ...request } = step;
        const actual = await subject.limiter.consume(request);
        const expected = model.consume(step.account, step.route, windowSetOf(step.route, step.lane), step.cost);
        expect(actual.lane).toBe(step.lane);
        expect(actual.degraded).toBe(false);
        const { accepted, impossible, trace } = actual;
        expect(accepted).toBe(expected.accepted);
        // A rejection that is repeated for another cost shows the window that rejected the first.
        if (clock !== undefined || accepted)
          expect({ impossible, trace: trace.map(shownOf) }).toEqual({
            impossible: expected.impossible,
            trace: expected.trace.map(shownOf),
          });
        decisions.push({ actual, expected });
        return;
      }
      case 'peek': {
        const { type: _, ...asked } = step;
        const actual = await subject.limiter.peek(asked);
        const expected = model.peek(step.account, step.route, windowSetOf(step.route, step.lane));
        expect(actual.map(shownOf)).toEqual(expected.map(shownOf));
        return;
      }
      case 'settle': {
        const picked = decisions[step.pick % decisions.length];
        if (picked === undefined) return;
        expect(await subject.limiter.settle(picked.actual, step.cost)).toBe(model.settle(picked.expected, step.cost));
        return;
      }
      case 'adjust': {
        if (step.isOfRoute) ofRoute = [step.max, ofRoute[1]];
        else allMethods = [[step.max, allMethods[0][1]], allMethods[1]];
        if (step.isOfRoute) await subject.adjust({ route: ROUTE }, [textOf(ofRoute)]);
        else await subject.adjust({}, allMethods.map(textOf));
        return;
      }
      case 'advance':
        clock?.advance(step.ms);
    }
  };
  const shownOf = (window: Decision['trace'][number]): object => {
    const { resetMs, startedAt, ...counted } = window;
    return clock === undefined ? counted : { ...counted, resetMs, startedAt };
  };
  for (const [at, step] of history.steps.entries())
    await run(step).catch((cause: unknown) => {
      throw new Error(`step ${at}: ${JSON.stringify(step)}`, { cause });
    });
}
