import type { Idempotency, Limiter, Subject } from 'headgate';
import type { SharedLimits } from 'headgate/shared-limits';
import type { Accounts } from '../admission/accounts.ts';
import type { Account, Config } from '../config/schema.ts';
import { type Refusal, refuse } from '../exchange/refusal.ts';
import type { Health } from '../operations/health.ts';
import type { Log } from '../operations/log.ts';
import type { ShadowRunner } from '../shadow/shadow-runner.ts';
import type { GatewayStore } from '../store/store.ts';
import type { ProcessDetails } from '../traffic/process-details.ts';
import type { Traffic } from '../traffic/traffic.ts';
import type { Caller } from './operation.ts';

/** The parts of a running gateway that the Admin API shows and changes. */
export interface AdminContext {
  /** The config of now. */
  readonly config: () => Config;
  /** The limiter of now. */
  readonly limiter: () => Limiter;
  /** The accounts of the config of now. */
  readonly accounts: () => Accounts;
  /** The config's limits, with the operators' adjustments. */
  readonly sharedLimits: SharedLimits;
  /** The candidate for other limits. */
  readonly shadow: ShadowRunner;
  readonly store: GatewayStore;
  readonly idempotency: Idempotency;
  readonly traffic: Traffic;
  readonly health: Health;
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

/** 404 if the config does not limit a route. */
export function refuseRoute({ routes }: Config, name: string | undefined): Refusal | undefined {
  if (name === undefined || routes.some(({ route, account }) => route === name && account !== undefined))
    return undefined;
  return refuse(404, 'errors/resource_not_found', 'The config has no such route with an account.');
}

/** The routes on which accounts are limited: one of them, or all. */
export function limitedRoutes({ routes }: Config, only?: string): readonly string[] {
  if (only !== undefined) return [only];
  return routes.filter(({ account }) => account !== undefined).map(({ route }) => route);
}

/** Whose limits apply to requests of an account on a route. */
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
