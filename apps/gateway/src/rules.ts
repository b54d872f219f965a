import type { Idempotency } from 'headgate';
import { createGate, createLimiter, type Gate, isHeadgateError, type Limiter, type UnitCosts } from 'headgate';
import { createClientIp } from 'headgate/client-ip';
import type { FailureEvent, HandlerResponse } from 'headgate/gate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import { createShadowedLimiter } from 'headgate/internal';
import { createReceipts, type InFlightEvent } from 'headgate/limits';
import type { SharedLimits } from 'headgate/shared-limits';
import type { ClaimStore, LimitStore } from 'headgate/stores';
import { type Accounts, createAccounts } from './admission/accounts.ts';
import { createAddressStage } from './admission/address-stage.ts';
import { createAdmission } from './admission/admission.ts';
import { createCors } from './admission/cors.ts';
import { createKeys } from './admission/keys.ts';
import { createRoutes } from './admission/routes.ts';
import type { Shares } from './admission/shares.ts';
import type { WorkBudget } from './admission/work-budget.ts';
import { laneChoice } from './config/lanes.ts';
import type { UpstreamSettings } from './config/schema/upstream.ts';
import type { Config } from './config/schema.ts';
import { allUpstreams, DEFAULT_UPSTREAM, upstreamChoice } from './config/upstreams.ts';
import { createDecisionRules } from './decisions/decision-rules.ts';
import { createDescriptors } from './decisions/descriptors.ts';
import { createRateLimitService, type DecideRateLimits } from './decisions/rate-limit-service.ts';
import type { Subject } from './exchange/exchange.ts';
import type { Log } from './operations/log.ts';
import type { Metrics } from './operations/metrics.ts';
import type { ForwardSettings } from './proxy/proxy.ts';
import type { Upstreams } from './proxy/upstreams.ts';
import type { Rules } from './server/rules.ts';
import type { ShadowRunner } from './shadow/shadow-runner.ts';
import type { Traffic } from './traffic/traffic.ts';

/** Parts that last as long as the process. All rules share them. */
export interface RuleParts {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly traffic: Traffic;
  readonly limits: LimitStore;
  readonly addressLimits: LimitStore;
  /** The config's limits, with the operators' adjustments. */
  readonly sharedLimits: SharedLimits;
  readonly shadow: ShadowRunner;
  readonly idempotency: Idempotency;
  readonly claims: ClaimStore;
  readonly onIdempotency: (event: IdempotencyEvent) => void;
  readonly shares: Shares;
  readonly workBudget: WorkBudget;
  readonly upstreams: Upstreams;
  readonly onUpstreamFailure: ForwardSettings['onFailure'];
}

/** Rules, with the limiter and the accounts that they ask. */
export interface LimitedRules extends Rules {
  readonly limiter: Limiter;
  readonly accounts: Accounts;
  /** For the listener that decides for others. Undefined without it. */
  readonly decisions: Rules | undefined;
  /** For Envoy's rate limit service. Undefined without it. */
  readonly decideRateLimits: DecideRateLimits | undefined;
}

const IGNORED_KEY =
  'a request has an Idempotency-Key, but its route is not idempotent, so a retry runs again: write "idempotent": true for the route, or false if this is meant';

/** The rules that a config describes. */
export function createRules(config: Config, parts: RuleParts): LimitedRules {
  const { log, metrics, traffic, limits, shadow, idempotency, shares, workBudget, upstreams } = parts;
  // Accounts, providers and routes of a request come from the config, which is checked separately.
  const clientIp = createClientIp({
    ...config.clientAddress,
    logger: (message, err) => log.logger.warn({ err }, message),
  });
  const accounts = createAccounts(config, clientIp);
  const secret = config.decisions?.secret;
  const receipts = secret === undefined ? undefined : createReceipts({ secret });
  const current = createLimiter({
    store: limits,
    limits: parts.sharedLimits,
    receipts,
    validate: false,
    inFlight: { onEvent: (event) => onInFlight(event, config, parts) },
  });
  const limiter = createShadowedLimiter(current, () => shadow.checks);
  const onFailure = (event: FailureEvent): void => {
    // 'closed' means that a duplicate was still waiting when the process stopped: not an error.
    const level = isHeadgateError(event.error, 'closed') ? 'info' : 'error';
    log.logger[level]({ req_id: event.requestId, stage: event.stage, err: event.error }, 'gate failure');
  };
  const gateOfDoors = createGate<Subject>({
    limiter,
    idempotency,
    idempotent: ({ idempotent }) => idempotent?.request,
    account: ({ account }) => account?.id,
    // A route of the config without an account is not limited. On every other route admission found the account.
    onNoAccount: 'pass',
    route: ({ route }) => route?.name,
    provider: ({ account }) => account?.provider,
    plan: ({ account }) => account?.plan,
    groups: Object.keys(config.limits.groups).length === 0 ? undefined : ({ groups }) => groups,
    lane: Object.keys(config.limits.lanes).length === 0 ? undefined : ({ lane }) => lane,
    cost: hasCosts(config) ? ({ cost, route }) => cost ?? route?.cost ?? 1 : undefined,
    headers: config.headers,
    // The handler of this gate is the upstream.
    providerAnswers: true,
    // The listener logs failures, with their fields.
    logger: false,
    // The config is checked separately, and may contain routes without an account on purpose.
    validate: false,
    onEvent(event) {
      metrics.onEvent(event);
      traffic.onEvent(event);
      shadow.onEvent(event);
      if (event.type === 'decision') log.decisions.onDecision(event.requestId, event.decision, accounts.find);
      else if (event.type === 'refund' && event.refunded) log.decisions.onSettled(event.requestId, event.decision, 0);
      else if (event.type === 'settled' && event.changed)
        log.decisions.onSettled(event.requestId, event.decision, event.cost);
      else if (event.type === 'failure') onFailure(event);
    },
  });
  const settings: ForwardSettings = {
    forwardFields: new Set(config.forwardFields.map((name) => name.toLowerCase())),
    timeoutMs: config.upstreamTimeoutMs,
    answerMs: config.upstreamAnswerMs,
    maxBodyBytes: config.maxBodyBytes,
    onHead: ({ route }, seconds) => metrics.onUpstream(route?.name ?? 'none', seconds),
    onFailure: parts.onUpstreamFailure,
  };
  const routes = createRoutes(config);
  const chooseLane = laneChoice(config.limits.lanes);
  const keys = createKeys(config.keys);
  const limitAddress =
    config.perAddress &&
    createAddressStage({
      perAddress: config.perAddress,
      config,
      clientIp,
      store: parts.addressLimits,
      onDecision(requestId, decision) {
        metrics.onAddress(decision);
        if (!decision.accepted) traffic.onDecision({ type: 'decision', requestId, decision });
      },
      onFailure(event) {
        metrics.onEvent(event);
        onFailure(event);
      },
    });
  const withIgnoredKeys = new Set<string>();
  const { admit, admitHead } = createAdmission({
    routes,
    keys,
    accounts,
    shares,
    chooseLane,
    maxBodyBytes: config.maxBodyBytes,
    clientTimeoutMs: config.clientTimeoutMs,
    workBudget,
    fingerprintSecret: config.idempotency.secret,
    onIgnoredKey({ name }) {
      if (withIgnoredKeys.has(name)) return;
      withIgnoredKeys.add(name);
      log.logger.warn({ route: name }, IGNORED_KEY);
    },
  });
  const all = allUpstreams(config);
  const choose = upstreamChoice(config.providers);
  const upstreamOf = ({ route, account }: Subject): string => choose(route?.upstream, account?.provider);
  // A provider's answer is known only where the gateway forwards.
  const gates = new Map<string, Rules['gate']>(
    [...all].map(([name, { cooldown, providerAnswers }]) => {
      const isPlain = cooldown === false && providerAnswers === true;
      const ofUpstream = isPlain ? gateOfDoors : gateOfDoors.with({ cooldown, providerAnswers });
      return [name, withFinalCosts(ofUpstream, config.routes)];
    }),
  );
  const gate: Rules['gate'] =
    gates.size === 1
      ? (gates.get(DEFAULT_UPSTREAM) as Rules['gate'])
      : { enter: (exchange, id) => (gates.get(upstreamOf(exchange)) as Rules['gate']).enter(exchange, id) };
  return {
    prepare: config.cors && createCors(config.cors, routes),
    limitAddress,
    admit,
    gate,
    limiter,
    accounts,
    decisions:
      config.decisions &&
      createDecisionRules({
        ...parts,
        config,
        accounts,
        keys,
        limitAddress,
        admitHead,
        gate: gateOfDoors,
        limiter,
        chooseLane,
        onRefund: metrics.onRefund,
      }),
    decideRateLimits:
      config.rateLimitService &&
      createRateLimitService({
        findDescriptor: createDescriptors(config, accounts),
        limiter,
        gate: gateOfDoors,
        onDecided: (id) => shadow.takeVerdict(id),
      }),
    forward(exchange, passage) {
      const { url } = all.get(upstreamOf(exchange)) as UpstreamSettings;
      upstreams.forward(url, exchange, passage, settings);
    },
  };
}

const IN_FLIGHT_TEXTS: Readonly<Record<InFlightEvent['type'], string>> = {
  over: 'a request in flight lost its slot, and there is no room to take it again: one more than inFlight runs',
  taken_again: 'a request in flight lost its slot and took it again: meanwhile another one may have run in its place',
  given_up: 'a request in flight did not end in time, and counts no more',
};

function onInFlight(event: InFlightEvent, { log: { account } }: Config, { metrics, log }: RuleParts): void {
  metrics.inFlight.onEvent(event);
  const { type, route } = event;
  log.logger.warn({ route, ...(account && { account: event.account }) }, IN_FLIGHT_TEXTS[type]);
}

/** Whether a request may cost anything but 1. */
function hasCosts({ routes, decisions, rateLimitService }: Config): boolean {
  return decisions !== undefined || rateLimitService !== undefined || routes.some(({ cost }) => cost !== undefined);
}

/** Enters the gate of a request's route. A route whose final cost the upstream says has a gate of its own. */
function withFinalCosts(gate: Gate<Subject>, routes: Config['routes']): Rules['gate'] {
  const gates = new Map(
    routes.flatMap(({ route, finalCost }) =>
      finalCost === undefined ? [] : [[route, gate.with({ finalCost: finalCostIn(finalCost) })] as const],
    ),
  );
  if (gates.size === 0) return gate;
  return { enter: (subject, id) => (gates.get(subject.route?.name ?? '') ?? gate).enter(subject, id) };
}

/** @param fields of the upstream's response, by unit */
function finalCostIn(fields: Readonly<Record<string, string>>) {
  return ({ header }: HandlerResponse): UnitCosts | undefined => {
    const costs = Object.entries(fields).flatMap(([unit, field]) => {
      const text = header(field) ?? '';
      const cost = Number(text);
      return /^\d+$/.test(text) && Number.isSafeInteger(cost) ? [[unit, cost] as const] : [];
    });
    return costs.length === 0 ? undefined : Object.fromEntries(costs);
  };
}
