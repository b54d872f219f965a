import { builtinModule } from '../base/builtin-module.ts';
import { Emitter } from '../base/emitter.ts';
import type { Decision } from '../core/decision.ts';
import type { Cost } from '../core/unit.ts';
import type { Refusal } from '../idempotency/refusal.ts';
import type { CooldownReport } from '../limits/cooldown.ts';

/** A limit accepted or rejected a request. */
export interface DecisionEvent {
  readonly type: 'decision';
  readonly requestId: string;
  readonly decision: Decision;
}

/**
 * A request passed without a decision: its route is not limited, or its account is undefined and `onNoAccount` is
 * `pass` (`not_limited`); a cache answers it (S12); or `allow` says so.
 */
export interface SkippedEvent {
  readonly type: 'skipped';
  readonly requestId: string;
  readonly reason: 'not_limited' | 'cached' | 'allowed';
}

/** A request was refused before any limit and any key: `deny` said so, or its account is undefined. */
export interface RefusedEvent {
  readonly type: 'refused';
  readonly requestId: string;
  readonly reason: 'denied' | 'no_account';
  /** HTTP status of the answer. */
  readonly status: 401 | 403;
}

/**
 * A charge was refunded, because the provider did not get the request, or because `finalCost` returned 0 (S12, S13).
 */
export interface RefundEvent {
  readonly type: 'refund';
  readonly requestId: string;
  readonly decision: Decision;
  /** False if there was nothing left to refund, because the window was over. */
  readonly refunded: boolean;
}

/** `finalCost` returned another cost than the charged cost, and not 0 (S13). */
export interface SettledEvent {
  readonly type: 'settled';
  readonly requestId: string;
  readonly decision: Decision;
  /** The final cost of the request, or of some of its units (S33). */
  readonly cost: Cost;
  /** False if nothing was changed, because the window was over, or because the handler had settled the decision. */
  readonly changed: boolean;
}

/** The result for the idempotency key of a request. */
export interface IdempotencyOutcomeEvent {
  readonly type: 'idempotency';
  readonly requestId: string;
  /** `claimed`: the request continues. `bypassed`: it continues unprotected (I12). Otherwise the gate answers it. */
  readonly outcome: 'claimed' | 'bypassed' | 'replayed' | Refusal['reason'];
}

/** The provider itself answered 429, according to `providerAnswers` (S16). */
export interface ProviderRejectedEvent {
  readonly type: 'provider_rejected';
  readonly requestId: string;
  readonly decision: Decision | undefined;
}

/**
 * The provider's answer to a request changed the cooldown of its account (S30). `started`: its requests are rejected for
 * `forMs`. `ended`: the provider accepted the first request after that.
 */
export interface CooldownEvent extends CooldownReport {
  readonly type: 'cooldown';
  readonly requestId: string;
  readonly decision: Decision;
}

/**
 * A resolver, the cache hook, `partitionKey`, `describe`, `answer` or the store failed. The request got a 500 or 503; or it had its answer, and
 * only its charge could not be settled. The failure is also written to the gate's `logger`.
 */
export interface FailureEvent {
  readonly type: 'failure';
  readonly requestId: string;
  /** `idempotent` is the resolver, `idempotency` is the store for claims, or a response that is no outcome. */
  readonly stage:
    | 'deny'
    | 'allow'
    | 'account'
    | 'route'
    | 'provider'
    | 'plan'
    | 'groups'
    | 'lane'
    | 'cost'
    | 'cached'
    | 'idempotent'
    | 'idempotency'
    | 'limits'
    | 'refund'
    | 'settle'
    | 'release'
    | 'finalCost'
    | 'providerAnswers'
    | 'cooldown'
    | 'partitionKey'
    | 'describe'
    | 'answer';
  readonly error: unknown;
}

/** Every event of a gate. Listeners must not change the objects. */
export type GateEvent =
  | DecisionEvent
  | SkippedEvent
  | RefusedEvent
  | RefundEvent
  | SettledEvent
  | ProviderRejectedEvent
  | CooldownEvent
  | IdempotencyOutcomeEvent
  | FailureEvent;

/** Name of the `node:diagnostics_channel` that publishes each {@link GateEvent} of every gate in the process. */
export const GATE_CHANNEL = 'headgate:gate';

/** Longest id of a request that is logged, in UTF-16 units. */
const MAX_SHOWN_ID = 200;

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** Also publishes each event on the diagnostics channel. */
export class GateEmitter extends Emitter<GateEvent> {
  readonly #channel = diagnosticsChannel();

  override get hasListener(): boolean {
    return this.listener !== undefined || this.#channel?.hasSubscribers === true;
  }

  override emit(event: GateEvent): void {
    if (this.#channel?.hasSubscribers) this.#channel.publish(event);
    super.emit(event);
  }

  /** Emits a failure, and logs it, whether anything listens or not. */
  emitFailure(failure: Omit<FailureEvent, 'type'>): void {
    this.emit({ type: 'failure', ...failure });
    const { stage, requestId, error } = failure;
    // A request that passed without a listener gets no id.
    const of = requestId === '' ? '' : ` (req_id ${printable(requestId)})`;
    this.log(`headgate: ${stage} failed${of}`, error);
  }
}

/** The client may choose the id. It must not add a line to the log, or a directive to the format of `console.error`. */
function printable(requestId: string): string {
  return requestId.slice(0, MAX_SHOWN_ID).replace(/[^!-~]|%/g, '?');
}

function diagnosticsChannel(): Channel | undefined {
  return builtinModule<{ channel(name: string): Channel }>('node:diagnostics_channel')?.channel(GATE_CHANNEL);
}
