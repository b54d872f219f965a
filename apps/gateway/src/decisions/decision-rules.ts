import type { Limiter } from 'headgate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import type { SharedLimits } from 'headgate/shared-limits';
import type { ClaimStore } from 'headgate/stores';
import type { Accounts } from '../admission/accounts.ts';
import type { AddressStage } from '../admission/address-stage.ts';
import type { Admission } from '../admission/admission.ts';
import type { Keys } from '../admission/keys.ts';
import type { Shares } from '../admission/shares.ts';
import type { ChooseLane } from '../config/lanes.ts';
import { routesOf, settingsIn } from '../config/routes.ts';
import type { Config } from '../config/schema.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Rules } from '../server/rules.ts';
import { claimOperations } from './claim-operations.ts';
import { createDecisionApi } from './decision-api.ts';
import { createForwardAuth } from './forward-auth.ts';
import { limitOperations } from './limit-operations.ts';
import { createSettlement, type Settle } from './settlement.ts';
import { createSubjects } from './subject.ts';

/** The parts of the rules of a config that decide about requests, forwarded or not. */
export interface DecisionRulesOptions {
  readonly config: Config;
  readonly accounts: Accounts;
  readonly keys: Keys;
  readonly shares: Shares;
  readonly limitAddress: AddressStage | undefined;
  readonly admitHead: Admission['admitHead'];
  readonly gate: Rules['gate'];
  readonly limiter: Limiter;
  readonly sharedLimits: Pick<SharedLimits, 'units'>;
  readonly chooseLane: ChooseLane;
  readonly claims: ClaimStore;
  readonly onIdempotency: (event: IdempotencyEvent) => void;
  readonly onRefund: (route: string) => void;
}

/** The rules of the listener that decides for others. Requests below `/decide` come from other proxies. */
export function createDecisionRules(options: DecisionRulesOptions): Rules {
  const { config, gate, sharedLimits } = options;
  // A reload can change them.
  const units = (): readonly string[] => sharedLimits.units ?? [];
  const settle = createSettlement({ ...options, hasReceipts: config.decisions?.secret !== undefined });
  const api = createDecisionApi({ ...options, operations: operationsOf(options, settle) });
  const { trustedProxies } = config.clientAddress;
  const forwardAuth = createForwardAuth({ ...options, trustedProxies, gate, settle, units });
  const rulesFor = ({ request: { url = '' } }: Exchange): Rules => (/^\/decide([/?]|$)/.test(url) ? forwardAuth : api);
  return {
    prepare: (exchange) => rulesFor(exchange).prepare?.(exchange),
    limitAddress: (exchange) => rulesFor(exchange).limitAddress?.(exchange),
    admit: (exchange) => rulesFor(exchange).admit(exchange),
    gate: { enter: (exchange, id) => rulesFor(exchange).gate.enter(exchange, id) },
    forward: (exchange, passage) => rulesFor(exchange).forward(exchange, passage),
  };
}

function operationsOf(
  { config, accounts, gate, chooseLane, onIdempotency: onEvent, ...parts }: DecisionRulesOptions,
  settle: Settle,
) {
  const settings = new Map(routesOf(config).map((route) => [route.name, route.idempotent?.settings]));
  return [
    ...limitOperations({
      ...parts,
      findSubject: createSubjects(config, accounts, chooseLane),
      accounts,
      settle,
      enter: (exchange) => gate.enter(exchange, exchange.id),
      fingerprintSecret: config.idempotency.secret,
    }),
    ...claimOperations({
      ...parts,
      settings: (route) => settings.get(route) ?? settingsIn(config.idempotency),
      onEvent,
    }),
  ];
}
