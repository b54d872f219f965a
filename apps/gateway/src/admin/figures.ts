import type { Idempotency } from 'headgate';
import type { LeaseStats, Leases } from 'headgate/limits';
import type { ShadowFigures } from 'headgate/shadow';
import { stateOf } from '../api/window-state.ts';
import { unitsOf } from '../base/cost.ts';
import type { ShadowRunner } from '../shadow/shadow-runner.ts';
import type { GatewayStore } from '../store/gateway-store.ts';
import { groupOf, outcomeOf } from '../traffic/event-feed.ts';
import type { Counted, Second } from '../traffic/series.ts';
import type { AccountRate, Ranking, SeenAccount, TopList } from '../traffic/top-accounts.ts';
import type { MetOrphan, Traffic } from '../traffic/traffic.ts';

/**
 * The figures that only one process knows: about its own requests. Plain data, because a worker sends them to its primary.
 */
export interface Figures {
  load(): Load | Promise<Load>;
  top(by: Ranking, limit: number): TopList;
  /** The last seconds before a moment, the oldest first. */
  seconds(count: number, nowMs: number): readonly Second[];
  /** The decision about a request, as the Admin API shows it. */
  decision(requestId: string): ShownDecision | undefined;
  /** The orphans that retries ran into, the last one first. */
  orphans(): readonly MetOrphan[];
  /** The accounts of the last five to ten minutes, the busiest first. */
  seen(): readonly SeenAccount[];
  /** The rate of each of these accounts. */
  rates(accounts: readonly string[]): readonly AccountRate[];
  /** Undefined without a candidate. */
  candidate(): CandidateFigures | undefined;
}

export type FigureName = keyof Figures;

/** One of the figures. */
export type Figure<Name extends FigureName> = Awaited<ReturnType<Figures[Name]>>;

/** What the status says about a process. */
export interface Load {
  readonly perSecond: Readonly<Record<Counted, number>>;
  /** Claims that the process holds. */
  readonly inFlight: number;
  /** Commands that the process repeats until the store acknowledges them. */
  readonly background: number;
  /** Orphans that retries ran into. */
  readonly orphansMet: number;
  readonly breaker: 'closed' | 'open' | 'half-open';
  readonly health: 'ok' | 'degraded';
  /** Undefined without leases. */
  readonly leases?: LeaseStats | undefined;
}

/** The figures of a candidate for other limits. Only figures of the same candidate can be added. */
export interface CandidateFigures {
  readonly id: string;
  readonly sinceMs: number;
  readonly figures: ShadowFigures;
}

export type ShownDecision = NonNullable<ReturnType<typeof shownDecision>>;

/** The parts of a process that know its figures. */
export interface FigureSources {
  readonly traffic: Traffic;
  readonly idempotency: Pick<Idempotency, 'held' | 'pending'>;
  readonly store: Pick<GatewayStore, 'breaker' | 'health'>;
  readonly shadow: Pick<ShadowRunner, 'running'>;
  readonly leases?: Pick<Leases, 'stats'> | undefined;
}

/** The figures of this process. */
export function ownFigures({ traffic, idempotency, store, shadow, leases }: FigureSources): Figures {
  return {
    load: async () => ({
      perSecond: traffic.perSecond(),
      inFlight: idempotency.held,
      background: idempotency.pending,
      orphansMet: traffic.orphans().length,
      breaker: store.breaker(),
      health: await store.health(),
      leases: leases?.stats(),
    }),
    top: (by, limit) => traffic.top(by, limit),
    seconds: (count, nowMs) => traffic.seconds(count, nowMs),
    decision: (requestId) => shownDecision(traffic, requestId),
    orphans: () => traffic.orphans(),
    seen: () => traffic.seen(),
    rates: (accounts) => accounts.map((account) => traffic.rate(account)),
    candidate() {
      if (shadow.running === undefined) return undefined;
      const { candidate, since, checks } = shadow.running;
      return { id: candidate.id, sinceMs: since.getTime(), figures: checks.figures() };
    },
  };
}

function shownDecision(traffic: Traffic, requestId: string) {
  const traced = traffic.find(requestId);
  if (traced === undefined) return undefined;
  const { atMs, decision } = traced;
  const { accepted, account, route, lane = null, cost, costs, blocked, inFlight, impossible, trace } = decision;
  return {
    req_id: requestId,
    at: new Date(atMs).toISOString(),
    outcome: outcomeOf(decision),
    account,
    route,
    lane,
    group: groupOf(decision) ?? null,
    cost,
    ...unitsOf(costs),
    blocked: blocked === undefined ? null : { forMs: blocked.forMs, reason: blocked.reason ?? null },
    inFlight: accepted ? null : (inFlight ?? null),
    impossible,
    trace: trace.map(stateOf),
  };
}
