import {
  type Block,
  BlockedDecision,
  type BlockTarget,
  Decision,
  type FreshStart,
  type LimitStore,
  NEVER,
  type ReadyOptions,
  type ResetTarget,
  StoreUnavailableError,
  type WindowSet,
  type WindowStatus,
  windowStatus,
} from 'headgate/stores';
import type { Pool } from 'pg';
import { Database } from './database.ts';
import { digest, fromText, lockOf, toText } from './names.ts';
import type { PostgresStoreOptions } from './options.ts';
import { Turns } from './turns.ts';

/** The route of an account's row, and of a block of the whole account. */
const NO_ROUTE = Buffer.alloc(0);

/** `[startedAt, count]`; null if the row does not contain the window. */
type StoredWindow = readonly [number, number] | null;

/** The rows and windows that a window set reads and writes: see limits.sql. */
interface Layout {
  /** Of each window: the name of its row, and its own name in it. */
  readonly rowOf: readonly string[];
  readonly keys: readonly string[];
  readonly usesAccount: boolean;
  readonly usesRoute: boolean;
}

const layouts = new WeakMap<WindowSet, Layout>();

function layoutOf(windowSet: WindowSet): Layout {
  let layout = layouts.get(windowSet);
  if (layout === undefined) {
    const isShared = windowSet.allMethodsScope === 'account';
    const rowOf = windowSet.windows.map(({ limit }) => (isShared && limit === 'all-methods' ? 'account' : 'route'));
    const keys = windowSet.windows.map(({ limit, durationMs }) => `${limit}/${durationMs}`);
    layout = { rowOf, keys, usesAccount: rowOf.includes('account'), usesRoute: rowOf.includes('route') };
    layouts.set(windowSet, layout);
  }
  return layout;
}

/** The rows that a windowSet uses, in the order of their locks. */
function placeOf(account: string, route: string, { usesAccount, usesRoute }: Layout) {
  const [accountId, routeId] = [digest(account), digest(route)];
  const routes = [...(usesAccount ? [NO_ROUTE] : []), ...(usesRoute ? [routeId] : [])];
  const rows = [...(usesAccount ? ['account'] : []), ...(usesRoute ? ['route'] : [])];
  const locks = [...(usesAccount ? [lockOf(accountId)] : []), ...(usesRoute ? [lockOf(accountId, routeId)] : [])];
  return { accountId, routeId, routes, rows, locks };
}

const countersOf = (windowSet: WindowSet, windows: readonly (StoredWindow | undefined)[]): Float64Array =>
  Float64Array.from(windowSet.windows.flatMap((_, i) => windows[i] ?? [NEVER, 0]));

class PostgresLimitStore implements LimitStore {
  readonly synchronous = false;
  readonly #database: Database;
  readonly #turns: Turns;

  constructor(database: Database) {
    this.#database = database;
    this.#turns = new Turns(database.deadlineMs);
  }

  /** Two stores with one pool and one schema share their counters. */
  get identity(): object {
    return identityOf(this.#database);
  }

  async consume(account: string, route: string, windowSet: WindowSet, cost: number): Promise<Decision> {
    const database = this.#database;
    const layout = layoutOf(windowSet);
    const { accountId, routeId, routes, rows, locks } = placeOf(account, route, layout);
    const [row] = await this.#turns.take(account, (deadlineMs) =>
      database.query<{ decision: string }>(
        'select headgate.consume($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) as decision',
        [
          ...[accountId, routes, rows, locks, [NO_ROUTE, routeId], layout.rowOf, layout.keys],
          ...[[...windowSet.durations], [...windowSet.maxes], cost, deadlineMs, database.now()],
        ],
        deadlineMs,
      ),
    );
    const [now, rejectedBy, windows, forMs, reason]: [number, number, StoredWindow[], number | null, string | null] =
      JSON.parse(row?.decision ?? '');
    if (forMs !== null) {
      return new BlockedDecision(account, route, windowSet, cost, now, { forMs, reason: fromText(reason) });
    }
    return new Decision(account, route, windowSet, cost, now, rejectedBy, countersOf(windowSet, windows));
  }

  async peek(account: string, route: string, windowSet: WindowSet): Promise<readonly WindowStatus[]> {
    const layout = layoutOf(windowSet);
    const { accountId, routes } = placeOf(account, route, layout);
    const [row] = await this.#database.query<{ found: string }>(
      `select json_build_array(coalesce($3, headgate.clock()), coalesce(
         json_object_agg(case route when '' then 'account' else 'route' end, windows), '{}'))::text as found
       from headgate.counters where account = $1 and route = any ($2)`,
      [accountId, routes, this.#database.now()],
    );
    const [now, found]: [number, Record<string, Record<string, StoredWindow>>] = JSON.parse(row?.found ?? '');
    const windows = layout.keys.map((key, i) => found[layout.rowOf[i] ?? '']?.[key]);
    const counters = countersOf(windowSet, windows);
    return windowSet.windows.map((window, i) => windowStatus(window, counters, 2 * i, now, 0));
  }

  async settle(decision: Decision, cost: number): Promise<boolean> {
    if (!decision.takeCharge()) return false;
    const { account, route, windowSet, trace } = decision;
    const database = this.#database;
    const layout = layoutOf(windowSet);
    const { accountId, routes, rows, locks } = placeOf(account, route, layout);
    try {
      const [row] = await this.#turns.take(account, (deadlineMs) =>
        database.query<{ settled: boolean }>(
          'select headgate.settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as settled',
          [
            ...[accountId, routes, rows, locks, layout.rowOf, layout.keys, [...windowSet.durations]],
            ...[trace.map(({ startedAt }) => startedAt), cost - decision.cost, deadlineMs, database.now()],
          ],
          deadlineMs,
        ),
      );
      const isSettled = row?.settled === true;
      if (!isSettled) decision.returnCharge();
      return isSettled;
    } catch (error) {
      // Otherwise the charge may have been settled, and must not be settled twice.
      if (error instanceof StoreUnavailableError && !error.sent) decision.returnCharge();
      throw error;
    }
  }

  async reset({ account, route }: ResetTarget): Promise<void> {
    const ids = [account, route].map((name) => (name === undefined ? null : digest(name)));
    // The rows are locked in the order of consume. They are deleted by their keys, because the snapshot of this
    // statement lacks the rows that a consume changed while this statement waited for it.
    await this.#database.query(
      `with doomed as (
         select account, route from headgate.counters
         where ($1::bytea is null or account = $1) and ($2::bytea is null or route = $2)
         order by account, route for update
       )
       delete from headgate.counters where (account, route) in (select account, route from doomed)`,
      ids,
    );
  }

  async block({ account, route }: BlockTarget, { forMs, reason }: Block, fresh?: FreshStart): Promise<void> {
    // One statement, so that both are seen at once. The row of a route that is counted for the first time meanwhile is
    // not in its snapshot, and stays.
    await this.#database.query(
      `with doomed as (
         select account, route from headgate.counters
         where $6 and account = $1 and ($2::bytea = '' or route = $2) order by account, route for update
       ), deleted as (
         delete from headgate.counters where (account, route) in (select account, route from doomed)
       ), clock as (select coalesce($5, headgate.clock()) as now), swept as (
         delete from headgate.blocks where ctid = any (array(
           select ctid from headgate.blocks, clock where expires_at <= now and not (account = $1 and route = $2)
           order by expires_at limit 4 for update of blocks skip locked
         ))
       )
       insert into headgate.blocks (account, route, reason, expires_at) select $1, $2, $3, now + $4 from clock
       on conflict (account, route) do update set reason = excluded.reason, expires_at = excluded.expires_at`,
      [digest(account), routeOf(route), toText(reason), forMs, this.#database.now(), fresh !== undefined],
    );
  }

  async unblock({ account, route }: BlockTarget): Promise<void> {
    await this.#database.query('delete from headgate.blocks where account = $1 and route = $2', [
      digest(account),
      routeOf(route),
    ]);
  }

  async blocked({ account, route }: BlockTarget): Promise<Block | undefined> {
    const [row] = await this.#database.query<{ for_ms: string; reason: string | null }>(
      `select expires_at - now as for_ms, reason
       from headgate.blocks, (select coalesce($3, headgate.clock()) as now) as clock
       where account = $1 and route = any ($2) and expires_at > now order by expires_at desc limit 1`,
      [digest(account), [NO_ROUTE, routeOf(route)], this.#database.now()],
    );
    return row && { forMs: Number(row.for_ms), reason: fromText(row.reason) };
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#database.ready(options);
  }
}

const routeOf = (route: string | undefined): Buffer => (route === undefined ? NO_ROUTE : digest(route));

const identities = new WeakMap<Pool, Map<string, object>>();

function identityOf({ pool, schema }: Database): object {
  const ofPool = identities.get(pool) ?? new Map<string, object>();
  identities.set(pool, ofPool);
  const identity = ofPool.get(schema) ?? {};
  ofPool.set(schema, identity);
  return identity;
}

/**
 * Creates a limit store in PostgreSQL, which any number of processes can share. A decision is one call of a function,
 * and one round trip. Call `migrate` once before. The store never connects, configures or closes the pool.
 * @throws OptionError
 */
export function createPostgresStore(pool: Pool, options: PostgresStoreOptions = {}): LimitStore {
  return new PostgresLimitStore(new Database(pool, options));
}
