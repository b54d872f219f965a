import type { Idempotency, Limiter, Subject } from 'headgate';
import type { SharedLimits } from 'headgate/shared-limits';
import type { MaybePromise } from 'headgate/stores';
import type { Accounts } from '../admission/accounts.ts';
import type { Caller } from '../api/operation.ts';
import { countsFor, isLimited } from '../config/account-source.ts';
import type { Account, Config } from '../config/schema.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { Log } from '../operations/log.ts';
import type { ShadowRunner } from '../shadow/shadow-runner.ts';
import type { GatewayStore } from '../store/gateway-store.ts';
import type { Subscription } from '../traffic/event-feed.ts';
import type { ProcessDetails } from '../traffic/process-details.ts';
import type { Traffic } from '../traffic/traffic.ts';
import type { AskFigures, CountedWorkers } from './combined-figures.ts';

/** The parts of a running gateway that the Admin API shows and changes. */
export interface AdminContext {
  /** The current config. */
  readonly config: () => Config;
  /** The current limiter. */
  readonly limiter: () => Limiter;
  /** The accounts of the current config. */
  readonly accounts: () => Accounts;
  /** The config's limits, with the operators' adjustments. */
  readonly sharedLimits: SharedLimits;
  /** The candidate for other limits. */
  readonly shadow: ShadowRunner;
  readonly store: GatewayStore;
  readonly idempotency: Idempotency;
  /** Of the process that answers. With workers it serves no request, and knows only what operators do. */
  readonly traffic: Traffic;
  /** The figures of every process of the gateway. */
  readonly figures: AskFigures;
  /** Listens to the events of every process of the gateway. */
  readonly subscribe: (subscription: Subscription) => MaybePromise<ReturnType<Traffic['subscribe']>>;
  readonly isReady: () => boolean;
  /** Takes the gateway out of a load balancer, or puts it back. Returns which workers obey. */
  readonly setReady: (isReady: boolean) => MaybePromise<CountedWorkers | undefined>;
  readonly log: Log;
  readonly startedAt: Date;
  /** The details that this process reports to the others. */
  readonly details: () => ProcessDetails;
}

/** The account of the config, or 404. */
export function accountOf({ accounts }: AdminContext, id: string): Account | Refusal {
  const detail = 'The config has no such account.';
  return accounts().find(id) ?? refuse(404, 'errors/invalid_resource_identifier', detail);
}

/** 404 if the config does not limit a route, or does not count it by such accounts. */
export function refuseRoute({ routes }: Config, name: string | undefined, of?: Account): Refusal | undefined {
  const route = routes.find((each) => each.route === name);
  if (name === undefined || (route && (of === undefined ? isLimited(route) : countsFor(route, of.id))))
    return undefined;
  const detail =
    route && isLimited(route)
      ? 'The route does not count by such accounts.'
      : 'The config has no such route with an account.';
  return refuse(404, 'errors/resource_not_found', detail);
}

/** The routes on which an account is limited: one of them, or all. */
export function limitedRoutes({ routes }: Config, { id }: Account, only?: string): readonly string[] {
  if (only !== undefined) return [only];
  return routes.filter((route) => countsFor(route, id)).map(({ route }) => route);
}

/** Selects the limits that apply to requests of an account on a route. */
export function subjectOf({ id, provider, plan }: Account, route: string): Subject {
  return { account: id, route, provider, plan };
}

/** Logs who changed something, and why. Ids that may be personal data are never logged. */
export function audit(
  { log }: AdminContext,
  { name, requestId }: Caller,
  what: string,
  fields: Readonly<Record<string, unknown>>,
): void {
  log.logger.info({ req_id: requestId, by: name, ...fields }, what);
}
