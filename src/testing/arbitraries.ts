import type FastCheck from 'fast-check';
import type { Limit, LimitWindow } from '../core/limit.ts';
import { createWindowSet, type WindowSet } from '../core/window-set.ts';

/**
 * One step of a history. It is plain data, so a failing history can be saved as JSON. What depends on the state (which
 * decision, which window) is a number; the runner takes it modulo the number of choices.
 */
export type Command =
  | { readonly type: 'consume'; readonly account: string; readonly route: string; readonly cost: number }
  | { readonly type: 'peek'; readonly account: string; readonly route: string }
  /**
   * Settles the `pick`-th earlier decision with `cost`, even if it was a rejection or was settled before; 0 refunds.
   */
  | { readonly type: 'settle'; readonly pick: number; readonly cost: number }
  /** Undoes the `pick`-th earlier decision (S31). A store without `undo` skips it. */
  | { readonly type: 'undo'; readonly pick: number }
  /** Charges a penalty (S35). A store without `charge` skips it. */
  | { readonly type: 'charge'; readonly account: string; readonly route: string; readonly cost: number }
  /** Charges equal requests in one step (S32), which `settle` can pick together. A store without `lease` skips it. */
  | {
      readonly type: 'lease';
      readonly account: string;
      readonly route: string;
      readonly cost: number;
      readonly requests: number;
    }
  /** From now on the route uses window set `pick`. */
  | { readonly type: 'adjust'; readonly route: string; readonly pick: number }
  | { readonly type: 'reset'; readonly account?: string | undefined; readonly route?: string | undefined }
  /** Blocks an account, or with a route one of its routes. A store without blocks skips it. */
  | {
      readonly type: 'block';
      readonly account: string;
      readonly route?: string | undefined;
      readonly forMs: number;
      readonly reason?: string | undefined;
      /** Whether the counters are deleted in the same step. */
      readonly isFresh?: boolean | undefined;
    }
  | { readonly type: 'unblock'; readonly account: string; readonly route?: string | undefined }
  | { readonly type: 'advance'; readonly ms: number }
  /**
   * Moves the clock to `offset` ms after the end of the `pick`-th window of the pair. A window that is not active is
   * assumed to start now.
   */
  | {
      readonly type: 'edge';
      readonly account: string;
      readonly route: string;
      readonly pick: number;
      readonly offset: number;
    }
  | { readonly type: 'step-back'; readonly ms: number };

/** The history of a store, from its creation. Every route starts with the first window set. */
export interface History {
  readonly windowSets: readonly WindowSet[];
  readonly commands: readonly Command[];
}

/** Options of {@link createArbitraries}. */
export interface ArbitrariesOptions {
  /**
   * Accounts of the histories; few, so that commands often share one.
   * @default ['a', 'b']
   */
  readonly accounts?: readonly string[];
  /**
   * Routes of the histories; few, for the same reason.
   * @default ['r', 's']
   */
  readonly routes?: readonly string[];
  /** @default 60 */
  readonly maxCommands?: number;
}

/** What {@link createArbitraries} returns. Durations are in milliseconds. */
export interface Arbitraries {
  readonly duration: FastCheck.Arbitrary<number>;
  readonly window: FastCheck.Arbitrary<LimitWindow>;
  readonly limit: FastCheck.Arbitrary<Limit>;
  readonly windowSet: FastCheck.Arbitrary<WindowSet>;
  readonly history: FastCheck.Arbitrary<History>;
}

const [FIRST_SURROGATE, SURROGATES, LAST_CODE_POINT] = [0xd800, 0x800, 0x10ffff];
const LONGEST_MS = 400 * 86_400_000;
const LONGEST_EXPONENT = Math.floor(Math.log2(LONGEST_MS));

/**
 * A string of any code points but halves of a surrogate pair, as the unit `binary` of fast-check has them. That unit
 * makes a table of a million characters for each arbitrary, which takes longer than hundreds of histories.
 */
export function anyString(fc: typeof FastCheck, maxLength: number): FastCheck.Arbitrary<string> {
  const character = fc
    .nat(LAST_CODE_POINT - SURROGATES)
    .map((index) => String.fromCodePoint(index < FIRST_SURROGATE ? index : index + SURROGATES));
  return fc.string({ unit: character, maxLength });
}

/**
 * Creates arbitraries of limits and of histories. fast-check is a parameter, so that `headgate/testing` loads without
 * it.
 * @example
 * const { history } = createArbitraries(fc);
 */
export function createArbitraries(fc: typeof FastCheck, options: ArbitrariesOptions = {}): Arbitraries {
  const { accounts = ['a', 'b'], routes = ['r', 's'], maxCommands = 60 } = options;

  // Log-distributed: as many below a second as between a week and a year, because each scale shows its own bugs.
  const duration = fc
    .tuple(fc.integer({ min: 0, max: LONGEST_EXPONENT }), fc.integer({ min: 0, max: 1023 }))
    .map(([exponent, part]) => Math.min(LONGEST_MS, Math.floor(2 ** exponent * (1 + part / 1024))));
  // Small ones reject within a short history. The largest find sums that are not safe integers.
  const max = fc.oneof(
    { arbitrary: fc.nat(4), weight: 10 },
    { arbitrary: fc.nat(20), weight: 8 },
    { arbitrary: fc.integer({ min: Number.MAX_SAFE_INTEGER - 2, max: Number.MAX_SAFE_INTEGER }), weight: 1 },
  );
  const cost = fc.oneof(
    { arbitrary: fc.constant(1), weight: 12 },
    { arbitrary: fc.integer({ min: 1, max: 6 }), weight: 4 },
    { arbitrary: fc.integer({ min: Number.MAX_SAFE_INTEGER - 2, max: Number.MAX_SAFE_INTEGER }), weight: 1 },
  );

  const windowOf = (durations: FastCheck.Arbitrary<number>): FastCheck.Arbitrary<LimitWindow> =>
    fc.record({ max, durationMs: durations });
  const limitOf = (durations: FastCheck.Arbitrary<number>): FastCheck.Arbitrary<Limit> =>
    fc
      .uniqueArray(windowOf(durations), { maxLength: 3, selector: (window) => window.durationMs })
      .map((windows) => windows.sort((a, b) => a.durationMs - b.durationMs));
  const windowSetOf = (durations: FastCheck.Arbitrary<number>): FastCheck.Arbitrary<WindowSet> =>
    fc
      .tuple(limitOf(durations), limitOf(durations), fc.constantFrom('route' as const, 'account' as const))
      .map(([route, allMethods, scope]) => createWindowSet(route, allMethods, scope));

  // The window sets of one history use a common pool of durations, so an adjustment keeps some windows and drops
  // others.
  const windowSets = fc
    .uniqueArray(duration, { minLength: 1, maxLength: 4 })
    .chain((pool) => fc.array(windowSetOf(fc.constantFrom(...pool)), { minLength: 1, maxLength: 3 }));

  const account = fc.constantFrom(...accounts);
  const route = fc.constantFrom(...routes);
  const pick = fc.nat(30);
  const command: FastCheck.Arbitrary<Command> = fc.oneof(
    { arbitrary: fc.record({ type: fc.constant('consume' as const), account, route, cost }), weight: 24 },
    { arbitrary: fc.record({ type: fc.constant('peek' as const), account, route }), weight: 3 },
    {
      arbitrary: fc.record({ type: fc.constant('settle' as const), pick, cost: fc.oneof(fc.constant(0), cost) }),
      weight: 7,
    },
    { arbitrary: fc.record({ type: fc.constant('undo' as const), pick }), weight: 3 },
    { arbitrary: fc.record({ type: fc.constant('charge' as const), account, route, cost }), weight: 2 },
    {
      arbitrary: fc.record({
        type: fc.constant('lease' as const),
        account,
        route,
        cost,
        requests: fc.integer({ min: 1, max: 8 }),
      }),
      weight: 3,
    },
    { arbitrary: fc.record({ type: fc.constant('adjust' as const), route, pick }), weight: 3 },
    {
      arbitrary: fc.record({ type: fc.constant('reset' as const), account, route }, { requiredKeys: ['type'] }),
      weight: 1,
    },
    {
      arbitrary: fc.record(
        {
          type: fc.constant('block' as const),
          account,
          route,
          // Short ones end within a short history.
          forMs: fc.oneof(fc.integer({ min: 1, max: 50 }), duration),
          reason: anyString(fc, 8),
          isFresh: fc.boolean(),
        },
        { requiredKeys: ['type', 'account', 'forMs'] },
      ),
      weight: 2,
    },
    {
      arbitrary: fc.record(
        { type: fc.constant('unblock' as const), account, route },
        { requiredKeys: ['type', 'account'] },
      ),
      weight: 1,
    },
    { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.nat(50) }), weight: 4 },
    { arbitrary: fc.record({ type: fc.constant('advance' as const), ms: duration }), weight: 2 },
    {
      arbitrary: fc.record({
        type: fc.constant('edge' as const),
        account,
        route,
        pick: fc.nat(5),
        offset: fc.integer({ min: -1, max: 1 }),
      }),
      weight: 5,
    },
    {
      arbitrary: fc.record({ type: fc.constant('step-back' as const), ms: fc.oneof(fc.nat(50), duration) }),
      weight: 1,
    },
  );

  return {
    duration,
    window: windowOf(duration),
    limit: limitOf(duration),
    windowSet: windowSetOf(duration),
    // 'max' makes all lengths equally likely. By default fast-check would mostly create histories of a few commands.
    history: fc.record({
      windowSets,
      commands: fc.array(command, { minLength: 1, maxLength: maxCommands, size: 'max' }),
    }),
  };
}
