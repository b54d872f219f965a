import type { Block, BlockTarget, FreshStart } from '../../core/block.ts';
import { monotonicClock } from '../../core/clock.ts';
import { type CooldownCommand, type CooldownReply, numbersOf, PROVIDER } from '../../core/cooldown.ts';
import { Decision, FITS, type WindowStatus, windowStatus } from '../../core/decision.ts';
import type { LeaseGrant, LimitStore, ReadyOptions, ResetTarget } from '../../core/ports.ts';
import type { Slot, SlotReply } from '../../core/slot.ts';
import { SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';
import { DEFAULT_MAX_KEYS } from '../memory/options.ts';
import { type Changed, Denials } from '../shared/denials.ts';
import { createFailover } from '../shared/failover.ts';
import { KnownBlocks, keepingCooldown } from '../shared/known-blocks.ts';
import { effectOf } from '../shared/limit-store-options.ts';
import type { LimitStoreStats, ServerLimitStore } from '../shared/server-limit-store.ts';
import { holdOnServer } from '../shared/server-slots.ts';
import { type Receipted, settleOnServer } from '../shared/settlement.ts';
import { CheckCalls, integerOf, type LimitStoreParts } from './check-calls.ts';
import type { PostgresClient } from './client.ts';
import { layoutOf } from './layout.ts';
import { arrayOf, digest, fromText, toText, ZERO } from './names.ts';
import { fillOptions, type PostgresStoreOptions } from './options.ts';
import { isNotExecuted, Server } from './server.ts';
import { SettleCalls } from './settle-calls.ts';
import { SlotCalls } from './slot-calls.ts';

export type { PostgresStoreOptions } from './options.ts';

/** Figures of a PostgreSQL store since its start, for operators. */
export type PostgresStoreStats = LimitStoreStats;

/** A {@link LimitStore} in PostgreSQL, which any number of processes can share. */
export interface PostgresStore extends ServerLimitStore {
  /**
   * Resolves after the first answer of PostgreSQL, if the schema is there and its user may use it. Await it when the
   * program starts.
   * @throws PostgresSetupError at once, StoreUnavailableError after `timeoutMs`, or the reason of the signal
   */
  ready(options?: ReadyOptions): Promise<void>;
}

/** Rows that one statement of a reset looks at, so that none of them takes long. */
const ROWS_PER_PAGE = 2_000;

/** The rows are locked in the order of consume_1, and deleted by their keys: a row can change before it is locked. */
const resetPage = (which: string): string => `with page as materialized (
    select account, route from headgate.counters where ${which} order by account, route limit ${ROWS_PER_PAGE}
  ), doomed as materialized (
    select c.account, c.route from headgate.counters as c join page using (account, route)
    where $3::text is null or c.route = $3::text::uuid order by c.account, c.route for update of c
  ), gone as (
    delete from headgate.counters where (account, route) in (select account, route from doomed)
  )
  select account::text as account, route::text as route from page order by page.account desc, page.route desc limit 1`;
const RESET_ALL = resetPage('(account, route) > ($1::text::uuid, $2::text::uuid)');
const RESET_ACCOUNT = resetPage('account = $1::text::uuid and ($2::text is null or route > $2::text::uuid)');
const RESET_PAIR = 'delete from headgate.counters where account = $1::text::uuid and route = $2::text::uuid';
const BLOCK = `select headgate.block_1($1::text::uuid, $2::text::uuid, $3::text::bigint, $4::text, $5::text::bigint,
  $6::text::boolean)`;
const COOLDOWN = `select state, pause_ms::text as ms from headgate.cooldown_1($1::text::uuid, $2::text::uuid,
  $3::text::uuid, $4::text, $5::text, $6::text::bigint[], $7::text::bigint)`;
const UNBLOCK = 'delete from headgate.blocks where account = $1::text::uuid and route = $2::text::uuid';
const BLOCKED = `select (ends - now)::text as ms, reason
  from headgate.blocks, (select coalesce($4::text::bigint, headgate.clock_1()) as now) as clock
  where account = $1::text::uuid and route in ($2::text::uuid, $3::text::uuid) and ends > now
  order by ends desc limit 1`;

/**
 * Creates a store in PostgreSQL. Call {@link migrate} once before. A decision is one statement, whatever the number of
 * windows, and the requests that wait at the same time share statements. The store never connects, configures or closes
 * the client.
 * @throws OptionError
 */
export function createPostgresStore(client: PostgresClient, options: PostgresStoreOptions = {}): PostgresStore {
  const filled = fillOptions(options);
  const { onStoreFailure, localMaxKeys, denyCacheMaxMs, denyCacheMaxKeys, clock, durable } = filled;
  const server = new Server(client, {
    ...filled,
    store: 'limits',
    what: 'rate limits',
    effect: effectOf(onStoreFailure),
  });
  return new PostgresLimitStore({
    server,
    durable: durable ? 'true' : 'false',
    failover: createFailover(onStoreFailure, localMaxKeys),
    knownBlocks: new KnownBlocks(localMaxKeys ?? DEFAULT_MAX_KEYS),
    denials: new Denials({ maxMs: clock === undefined ? denyCacheMaxMs : 0, maxKeys: denyCacheMaxKeys }),
  });
}

class PostgresLimitStore implements PostgresStore {
  readonly synchronous = false;
  readonly identity: object;
  readonly #parts: LimitStoreParts;
  readonly #calls: CheckCalls;
  readonly #settlements: SettleCalls;
  readonly #slots: SlotCalls;

  constructor(parts: LimitStoreParts) {
    this.#parts = parts;
    this.#calls = new CheckCalls(parts);
    this.#settlements = new SettleCalls(parts);
    this.#slots = new SlotCalls(parts.server);
    this.identity = parts.server.schema.identity;
  }

  consume(account: string, route: string, windowSet: WindowSet, cost: number): Decision | Promise<Decision> {
    // The request is not limited.
    if (windowSet.windows.length === 0)
      return new Decision(account, route, windowSet, cost, monotonicClock.now(), FITS, []);
    const pair = pairOf(account, route);
    const denied = this.#denied(pair, account, route, windowSet, cost);
    return denied ?? this.#calls.decide(account, route, windowSet, cost, pair);
  }

  lease(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    requests: number,
  ): LeaseGrant | Promise<LeaseGrant> {
    // The requests are not limited.
    if (windowSet.windows.length === 0)
      return { decision: this.consume(account, route, windowSet, cost) as Decision, granted: requests };
    const pair = pairOf(account, route);
    const denied = this.#denied(pair, account, route, windowSet, cost);
    return denied === undefined
      ? this.#calls.lease(account, route, windowSet, cost, requests, pair)
      : { decision: denied, granted: 0 };
  }

  knownRejection(account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined {
    return this.#denied(pairOf(account, route), account, route, windowSet, cost);
  }

  async peek(account: string, route: string, windowSet: WindowSet): Promise<readonly WindowStatus[]> {
    if (windowSet.windows.length === 0) return [];
    const { now, counters } = await this.#calls.read(account, route, windowSet, pairOf(account, route));
    return windowSet.windows.map((window, i) => windowStatus(window, counters, i * SLOTS_PER_WINDOW, now, 0));
  }

  settle(decision: Decision, cost: number): Promise<boolean> {
    return this.#settle(decision, cost);
  }

  undo(decision: Decision): Promise<boolean> {
    return this.#settle(decision, undefined);
  }

  settleOnce(decision: Decision, cost: number, receipt: string, until?: number): Promise<boolean> {
    return this.#settle(decision, cost, { receipt, until });
  }

  #settle(decision: Decision, cost: number | undefined, receipted?: Receipted): Promise<boolean> {
    const { denials, failover } = this.#parts;
    const { account, route, windowSet } = decision;
    const pair = pairOf(account, route);
    const changed = layoutOf(windowSet).shared ? { shared: account } : { pair };
    return settleOnServer({ denials, failover, isNotExecuted }, decision, cost, changed, (change) =>
      this.#settlements.settle(decision, change, cost === undefined, pair, receipted),
    );
  }

  async charge(account: string, route: string, windowSet: WindowSet, cost: number): Promise<readonly WindowStatus[]> {
    // Rejections that are cached stay certain: a charge makes no room.
    return windowSet.windows.length === 0 ? [] : this.#calls.charge(account, route, windowSet, cost);
  }

  holdSlot(slot: Slot, leaseMs: number): Promise<SlotReply> {
    return holdOnServer(this.#parts.failover, { slot, leaseMs }, this.#slots.run);
  }

  async releaseSlot(slot: Slot): Promise<void> {
    this.#parts.failover.releaseSlot(slot);
    await this.#slots.run({ slot, leaseMs: 0 });
  }

  async reset({ account, route }: ResetTarget): Promise<void> {
    if (account !== undefined && route !== undefined) {
      await this.#changing({ pair: pairOf(account, route) }, 'reset', RESET_PAIR, [digest(account), digest(route)]);
      return;
    }
    const text = account === undefined ? RESET_ALL : RESET_ACCOUNT;
    const only = route === undefined ? null : digest(route);
    let after = account === undefined ? [ZERO, ZERO] : [digest(account), null];
    for (;;) {
      const [last] = await this.#changing({ account }, 'reset', text, [...after, only]);
      if (last === undefined) return;
      after = [String(last.account), String(last.route)];
    }
  }

  async block(target: BlockTarget, block: Block, fresh?: FreshStart): Promise<void> {
    const { server, knownBlocks } = this.#parts;
    const values = [String(block.forMs), toText(block.reason), server.now(), String(fresh !== undefined)];
    await this.#changing(changedBy(target), 'block', BLOCK, [...placeOf(target), ...values]);
    knownBlocks.add(target, block);
  }

  async unblock(target: BlockTarget): Promise<void> {
    await this.#changing(changedBy(target), 'unblock', UNBLOCK, placeOf(target));
    this.#parts.knownBlocks.delete(target);
  }

  async blocked(target: BlockTarget): Promise<Block | undefined> {
    const { server } = this.#parts;
    const [row] = await server.run('blocked', BLOCKED, [...placeOf(target), ZERO, server.now()]);
    return row && { forMs: integerOf(row.ms), reason: fromText(row.reason as string | null) };
  }

  async cooldown(target: BlockTarget, command: CooldownCommand): Promise<CooldownReply> {
    const { server, knownBlocks } = this.#parts;
    const [account, route] = placeOf(target);
    const numbers = arrayOf(numbersOf(command));
    const values = [account, route, digest(`cooldown ${route}`), command.kind, toText(PROVIDER), numbers, server.now()];
    return keepingCooldown(knownBlocks, target, command, async () => {
      const [row] = await this.#changing(changedBy(target), 'cooldown', COOLDOWN, values);
      return { state: row?.state as CooldownReply['state'], forMs: integerOf(row?.ms) };
    }) as Promise<CooldownReply>;
  }

  ready(options?: ReadyOptions): Promise<void> {
    return this.#parts.server.ready(options);
  }

  stats(): PostgresStoreStats {
    const { denials, server } = this.#parts;
    return {
      calls: this.#calls.count,
      coalesced: this.#calls.coalesced,
      localRejections: denials.hits,
      timeouts: server.breaker.timeouts,
      late: server.breaker.late,
      degraded: this.#calls.decider.degraded,
      breaker: server.breaker.state,
    };
  }

  /** The cached rejection of a pair (S20). */
  #denied(pair: string, account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined {
    return this.#parts.denials.get(pair, account, route, windowSet, cost, monotonicClock.now());
  }

  /** Runs a statement that can make rejections wrong. */
  #changing(changed: Changed, operation: string, text: string, values: readonly (string | null)[]) {
    const { denials, server } = this.#parts;
    return denials.forgetDuring(changed, () => server.run(operation, text, values));
  }
}

/** Names the counters of an account on a route. */
function pairOf(account: string, route: string): string {
  return digest(account) + digest(route);
}

function changedBy({ account, route }: BlockTarget): Changed {
  return route === undefined ? { account } : { pair: pairOf(account, route) };
}

/** The account and the route of a block's row. */
function placeOf({ account, route }: BlockTarget): [account: string, route: string] {
  return [digest(account), route === undefined ? ZERO : digest(route)];
}
