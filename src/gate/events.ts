import type { Decision } from '../core/decision.ts';
import { Emitter } from '../core/emitter.ts';
import type { Refusal } from '../idempotency/refusal.ts';

/** A limit accepted or rejected a request. */
export interface DecisionEvent {
  readonly type: 'decision';
  readonly requestId: string;
  readonly decision: Decision;
}

/** A request passed without a decision: its route is not limited, or a cache answers it (S12). */
export interface SkippedEvent {
  readonly type: 'skipped';
  readonly requestId: string;
  readonly reason: 'not_limited' | 'cached';
}

/** A charge was refunded (S12, S13). */
export interface RefundEvent {
  readonly type: 'refund';
  readonly requestId: string;
  readonly decision: Decision;
  /** False if there was nothing left to refund, because the window was over. */
  readonly refunded: boolean;
}

/** What happened to the idempotency key of a request. */
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
 * A resolver, the cache hook or the store failed. The request got a 500 or 503. If the gate has no listener, the error
 * behind a 500 is written to the console.
 */
export interface FailureEvent {
  readonly type: 'failure';
  readonly requestId: string;
  /** `idempotent` is the resolver, `idempotency` is the store for claims. */
  readonly stage:
    | 'account'
    | 'route'
    | 'provider'
    | 'cost'
    | 'cached'
    | 'idempotent'
    | 'idempotency'
    | 'limits'
    | 'refund'
    | 'providerAnswers';
  readonly error: unknown;
}

/** Every event of a gate. Listeners must not change the objects. */
export type GateEvent =
  | DecisionEvent
  | SkippedEvent
  | RefundEvent
  | ProviderRejectedEvent
  | IdempotencyOutcomeEvent
  | FailureEvent;

/** Name of the `node:diagnostics_channel` that publishes each {@link GateEvent} of every gate in the process. */
export const GATE_CHANNEL = 'headgate:gate';

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

  /** Emits a failure behind a 500. Without a listener it goes to the console: otherwise the error would be lost. */
  emitInternalError(event: FailureEvent): void {
    this.emit(event);
    if (this.hasListener) return;
    const { requestId, stage, error } = event;
    try {
      // The client may choose the id, so it is not part of the format. Properties of the error may be very long.
      const text = error instanceof Error ? error.stack : String(error);
      // biome-ignore lint/suspicious/noConsole: without a listener
      console.error('headgate: %s failed (req_id %s): %s', stage, requestId, text);
    } catch {
      // Reading the error failed.
    }
  }
}

/** Works without an import of `node:`, so that the gate also runs on other platforms. */
function diagnosticsChannel(): Channel | undefined {
  const module = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel');
  return module?.channel(GATE_CHANNEL);
}
