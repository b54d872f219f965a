import type { Decision } from '../core/decision.ts';
import type { Refusal } from '../idempotency/idempotency.ts';

/** One passage was decided: accepted, or rejected by a limit. */
export interface DecisionEvent {
  readonly type: 'decision';
  readonly requestId: string;
  readonly decision: Decision;
}

/** One passage took no decision: the route is not limited, or the answer comes from a cache (S12). */
export interface SkippedEvent {
  readonly type: 'skipped';
  readonly requestId: string;
  readonly reason: 'not_limited' | 'cached';
}

/** A charge was taken back (S12, S13). */
export interface RefundEvent {
  readonly type: 'refund';
  readonly requestId: string;
  readonly decision: Decision;
  /** False where nothing was left to take back: the window was over. */
  readonly refunded: boolean;
}

/** What became of an idempotency key. */
export interface IdempotencyOutcomeEvent {
  readonly type: 'idempotency';
  readonly requestId: string;
  /** `claimed`: the request goes on. `bypassed`: it goes on without protection (I12). The others answer it. */
  readonly outcome: 'claimed' | 'bypassed' | 'replayed' | Refusal['reason'];
}

/** The provider answered 429 by itself (S16). */
export interface ProviderRejectedEvent {
  readonly type: 'provider_rejected';
  readonly requestId: string;
  readonly decision: Decision | undefined;
}

/**
 * Something of the gate's broke: a resolver, the cache hook or the store. The request got a 500 or 503. Where nobody listens, what a 500 hides is
 * written to the console.
 */
export interface FailureEvent {
  readonly type: 'failure';
  readonly requestId: string;
  /** `idempotent` is the resolver, `idempotency` the store behind it. */
  readonly stage:
    | 'account'
    | 'route'
    | 'provider'
    | 'cost'
    | 'cached'
    | 'idempotent'
    | 'idempotency'
    | 'limits'
    | 'refund';
  readonly error: unknown;
}

/** Everything that a gate tells. Objects are not to be changed. */
export type GateEvent =
  | DecisionEvent
  | SkippedEvent
  | RefundEvent
  | ProviderRejectedEvent
  | IdempotencyOutcomeEvent
  | FailureEvent;

/** Name of the `node:diagnostics_channel` that carries each {@link GateEvent} of every gate in the process. */
export const GATE_CHANNEL = 'headgate:gate';

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}

/** Tells a listener and the diagnostics channel; neither can break a request. */
export class Events {
  readonly #channel = diagnosticsChannel();
  readonly #onEvent: ((event: GateEvent) => void) | undefined;

  constructor(onEvent: ((event: GateEvent) => void) | undefined) {
    this.#onEvent = onEvent;
  }

  /** Whether anybody listens; an event that nobody hears need not be made. */
  get heard(): boolean {
    return this.#onEvent !== undefined || this.#channel?.hasSubscribers === true;
  }

  /** What a 500 hides, where nobody hears of it: else nobody would ever know. */
  failedUnheard({ requestId, stage, error }: FailureEvent): void {
    if (this.heard) return;
    try {
      // An id may be the client's, and is no format; so may be what hangs on the error, and that is long.
      const text = error instanceof Error ? error.stack : String(error);
      // biome-ignore lint/suspicious/noConsole: nobody listens
      console.error('headgate: %s broke (req_id %s): %s', stage, requestId, text);
    } catch {
      // An error that cannot even be read.
    }
  }

  emit(event: GateEvent): void {
    if (this.#channel?.hasSubscribers) this.#channel.publish(event);
    try {
      this.#onEvent?.(event);
    } catch (error) {
      // A listener's fault is the program's, not the request's: it surfaces where uncaught errors do.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** Without an import of `node:`, so that the gate also runs where there is none. */
function diagnosticsChannel(): Channel | undefined {
  const module = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel');
  return module?.channel(GATE_CHANNEL);
}
