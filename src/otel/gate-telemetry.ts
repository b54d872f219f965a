import { type Attributes, type Counter, type Meter, type Span, trace } from '@opentelemetry/api';
import type { Decision } from '../core/decision.ts';
import type { FailureEvent, GateEvent } from '../gate/events.ts';

/** The result of a request at the gates. */
type Outcome = 'accepted' | 'rejected' | 'degraded' | 'unlimited' | 'replayed' | 'refused';

/** A failure of these stages comes after the decision, and does not change what becomes of the request. */
const LATE_STAGES: readonly FailureEvent['stage'][] = [
  'refund',
  'settle',
  'release',
  'finalCost',
  'providerAnswers',
  'cooldown',
  'partitionKey',
  'describe',
  'answer',
];

/** Makes attributes of the active span, and counters, of the events of gates. */
export class GateTelemetry {
  readonly #account: (account: string) => string | undefined;
  readonly #decisions: Counter;
  readonly #claims: Counter;
  readonly #providerRejections: Counter;
  readonly #cooldowns: Counter;
  readonly #refunds: Counter;
  /** Spans of requests that a gate decided. A second gate that does not limit them says nothing about them. */
  readonly #decided = new WeakSet<Span>();

  /** @param account the form of an account in spans */
  constructor(meter: Meter, account: (account: string) => string | undefined) {
    this.#account = account;
    const counter = (name: string, unit: string, description: string): Counter =>
      meter.createCounter(`headgate.${name}`, { unit, description });
    this.#decisions = counter('decisions', '{decision}', 'Decisions by route, limit shown in the headers, and outcome');
    this.#claims = counter('claims', '{claim}', 'Requests with an idempotency key, by outcome');
    this.#providerRejections = counter(
      'provider.rejections',
      '{response}',
      "429 answers of the provider's own limits, by route",
    );
    this.#cooldowns = counter('cooldowns', '{change}', "Cooldowns by a provider's answer, by route and state");
    this.#refunds = counter('refunds', '{charge}', 'Refunded charges, by route');
  }

  onEvent(event: GateEvent): void {
    switch (event.type) {
      case 'decision':
        this.#onDecision(event.decision);
        break;
      case 'skipped':
        setOutcome('unlimited', (span) => !this.#decided.has(span));
        break;
      case 'refused':
        setOutcome('refused');
        break;
      case 'idempotency':
        this.#onClaim(event.outcome);
        break;
      case 'failure':
        if (!LATE_STAGES.includes(event.stage)) setOutcome('refused');
        break;
      case 'provider_rejected':
        this.#providerRejections.add(1, routeOf(event.decision));
        break;
      case 'cooldown':
        this.#cooldowns.add(1, { ...routeOf(event.decision), 'headgate.cooldown.state': event.state });
        break;
      case 'refund':
        if (event.refunded) this.#refunds.add(1, routeOf(event.decision));
        break;
      case 'settled':
        break;
    }
  }

  #onDecision(decision: Decision): void {
    const { accepted, degraded, shown } = decision;
    const withoutWindow = limitWithoutWindow(decision);
    const outcome: Outcome = degraded ? 'degraded' : accepted ? 'accepted' : 'rejected';
    this.#decisions.add(1, {
      ...routeOf(decision),
      ...laneOf(decision),
      ...groupOf(decision),
      'headgate.limit': withoutWindow ?? shown?.limit ?? 'none',
      ...unitOf(decision),
      'headgate.outcome': outcome,
    });
    const span = trace.getActiveSpan();
    if (span === undefined) return;
    this.#decided.add(span);
    span.setAttributes({ ...laneOf(decision), ...groupOf(decision), 'headgate.outcome': outcome });
    const account = this.#account(decision.account);
    if (account !== undefined) span.setAttribute('headgate.account', account);
    if (withoutWindow !== undefined) span.setAttribute('headgate.limit', withoutWindow);
    else if (shown !== undefined)
      span.setAttributes({
        'headgate.limit': shown.limit,
        ...unitOf(decision),
        'headgate.window.duration_ms': shown.durationMs,
        'headgate.window.max': shown.max,
        'headgate.window.remaining': shown.remaining,
      });
  }

  #onClaim(outcome: string): void {
    this.#claims.add(1, { 'headgate.idempotency.outcome': outcome });
    trace.getActiveSpan()?.setAttribute('headgate.idempotency.outcome', outcome);
    if (outcome === 'replayed') setOutcome('replayed');
    else if (outcome !== 'claimed' && outcome !== 'bypassed') setOutcome('refused');
  }
}

function setOutcome(outcome: Outcome, applies: (span: Span) => boolean = () => true): void {
  const span = trace.getActiveSpan();
  if (span !== undefined && applies(span)) span.setAttribute('headgate.outcome', outcome);
}

/** What rejected a request, if no window did. */
function limitWithoutWindow({ accepted, blocked, inFlight }: Decision): 'block' | 'in_flight' | undefined {
  if (blocked !== undefined) return 'block';
  return accepted || inFlight === undefined ? undefined : 'in_flight';
}

function routeOf(decision: Decision | undefined): Attributes {
  return { 'headgate.route': decision?.route ?? 'unlimited' };
}

/** Without a lane, counters are those of programs that have none. */
function laneOf({ lane }: Decision): Attributes {
  return lane === undefined ? {} : { 'headgate.lane': lane };
}

/** What the shown window counts, unless it counts requests. */
function unitOf({ shown }: Decision): Attributes {
  return shown?.unit === undefined ? {} : { 'headgate.unit': shown.unit };
}

/** The group whose limit rejected the request. Its name is of the limits, never of a request. */
function groupOf({ rejectedBy }: Decision): Attributes {
  return rejectedBy === undefined || rejectedBy === 'account' ? {} : { 'headgate.group': rejectedBy };
}
