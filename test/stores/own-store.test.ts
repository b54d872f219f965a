/** Stores as an author writes them: rows behind an asynchronous table, and the rules from `headgate/stores`. */
import fc from 'fast-check';
import { describe, it } from 'vitest';
import {
  abandonClaim,
  beginClaim,
  type ClaimId,
  type ClaimRecord,
  type ClaimStep,
  type ClaimStore,
  charge,
  claimRecordAt,
  completeClaim,
  Decision,
  dispatchClaim,
  evaluate,
  extendClaim,
  FITS,
  type LimitStore,
  NEVER,
  type Plan,
  type PlanWindow,
  SLOTS_PER_WINDOW,
  takeBack,
  windowStatus,
} from '../../src/stores/index.ts';
import { claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { limitStoreSuite } from '../../src/testing/limit-store-suite.ts';

/** A table with transactions: one after the other, each answered later. */
function createTable<Row>() {
  const rows = new Map<string, Row>();
  let last: Promise<unknown> = Promise.resolve();
  const transaction = <Result>(work: (rows: Map<string, Row>) => Result): Promise<Result> => {
    const done = last.then(() => work(rows));
    last = done.catch(() => {});
    return done;
  };
  return { transaction };
}

type CounterRow = readonly [startedAt: number, count: number];

/** One row per window and per route, or per account if the account's routes share the window. */
function rowOf(account: string, route: string, plan: Plan, { limit, durationMs }: PlanWindow): string {
  const isShared = limit === 'all-methods' && plan.allMethodsScope === 'account';
  return JSON.stringify([account, isShared ? null : route, limit, durationMs]);
}

function createTableLimits(clock: FakeClock): LimitStore {
  const { transaction } = createTable<CounterRow>();
  const read = (rows: Map<string, CounterRow>, names: readonly string[]): Float64Array =>
    Float64Array.from(names.flatMap((name) => rows.get(name) ?? [NEVER, 0]));
  const write = (rows: Map<string, CounterRow>, names: readonly string[], counters: Float64Array): void => {
    for (const [i, name] of names.entries()) rows.set(name, [counters[2 * i] ?? NEVER, counters[2 * i + 1] ?? 0]);
  };
  return {
    synchronous: false,
    consume: (account, route, plan, cost) =>
      transaction((rows) => {
        const now = clock.now();
        const names = plan.windows.map((window) => rowOf(account, route, plan, window));
        const counters = read(rows, names);
        const rejectedBy = evaluate(plan, counters, 0, cost, now);
        if (rejectedBy === FITS) {
          charge(plan, counters, 0, cost, now);
          write(rows, names, counters);
        }
        return new Decision(account, route, plan, cost, now, rejectedBy, counters);
      }),
    peek: (account, route, plan) =>
      transaction((rows) => {
        const names = plan.windows.map((window) => rowOf(account, route, plan, window));
        const counters = read(rows, names);
        return plan.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, clock.now(), 0));
      }),
    refund: (decision) =>
      transaction((rows) => {
        if (!decision.takeRefund()) return false;
        const { account, route, plan, cost, trace } = decision;
        const names = plan.windows.map((window) => rowOf(account, route, plan, window));
        const counters = read(rows, names);
        const taken = trace.map(({ startedAt = NEVER, durationMs }, i) =>
          takeBack(counters, i * SLOTS_PER_WINDOW, durationMs, startedAt, cost, clock.now()),
        );
        write(rows, names, counters);
        return taken.includes(true);
      }),
    reset: (target) =>
      transaction((rows) => {
        for (const name of rows.keys()) {
          const [account, route] = JSON.parse(name) as [string, string | null];
          const isMeant = (target.account ?? account) === account && (target.route ?? route) === route;
          if (isMeant) rows.delete(name);
        }
      }),
  };
}

function createTableClaims(clock: FakeClock): ClaimStore {
  const { transaction } = createTable<ClaimRecord>();
  const step = <Command, Reply>(
    rule: (record: ClaimRecord | undefined, command: Command, now: number) => ClaimStep<Reply>,
  ) => {
    return ({ scope, key }: ClaimId, command: Command): Promise<Reply> =>
      transaction((rows) => {
        const name = JSON.stringify([scope, key]);
        const { record, reply } = rule(rows.get(name), command, clock.now());
        if (record === undefined) rows.delete(name);
        else rows.set(name, record);
        return reply;
      });
  };
  return {
    synchronous: false,
    begin: step(beginClaim),
    extend: step(extendClaim),
    dispatch: step(dispatchClaim),
    complete: step(completeClaim),
    abandon: step(abandonClaim),
    inspect: ({ scope, key }) =>
      transaction((rows) => {
        const now = clock.now();
        const record = claimRecordAt(rows.get(JSON.stringify([scope, key])), now);
        if (record === undefined) return undefined;
        const { leaseUntil, keptUntil, ...rest } = record;
        const leaseMs = record.state === 'in_progress' ? Math.max(0, leaseUntil - now) : 0;
        return { ...rest, leaseMs, keptMs: keptUntil - now };
      }),
  };
}

limitStoreSuite({ describe, it }, fc, { name: 'a table', create: createTableLimits, histories: 200 });
claimStoreSuite({ describe, it }, fc, { name: 'a table', create: createTableClaims, histories: 100 });
