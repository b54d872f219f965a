import {
  type Attributes,
  type Histogram,
  type Meter,
  type ObservableGauge,
  type ObservableResult,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { isHeadgateError } from '../base/errors.ts';
import type { StoreCall } from '../core/store-channel.ts';

/** A call that is under way. */
interface Begun {
  /** Undefined without one. */
  readonly span: Span | undefined;
  /** On the monotonic timer, in milliseconds. */
  readonly startedAt: number;
}

/** In seconds. The one of a store nearby is below a millisecond, and its deadline is a quarter of a second. */
const BOUNDARIES = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const STATES = { closed: 0, 'half-open': 1, open: 2 } as const;

/** Makes a span and a measurement of each call of a store, and a gauge of its circuit breakers. */
export class StoreTelemetry {
  readonly #tracer: Tracer;
  readonly #duration: Histogram;
  readonly #begun = new WeakMap<StoreCall, Begun>();
  readonly #gauge: ObservableGauge;
  /**
   * The circuit breakers that were seen, by the store that they belong to. A store that is not used any more may go.
   */
  readonly #breakers = new Map<StoreCall['store'], Set<WeakRef<StoreCall['breaker']>>>();
  readonly #known = new WeakSet<StoreCall['breaker']>();

  constructor(meter: Meter, tracer: Tracer) {
    this.#tracer = tracer;
    this.#duration = meter.createHistogram('headgate.store.duration', {
      unit: 's',
      description: 'Duration of calls to the store, by operation',
      advice: { explicitBucketBoundaries: BOUNDARIES },
    });
    this.#gauge = meter.createObservableGauge('headgate.store.breaker', {
      unit: '1',
      description: 'State of the circuit breaker: 0 closed, 1 half-open, 2 open',
    });
    this.#gauge.addCallback(this.#observe);
  }

  onStart(call: StoreCall): void {
    this.#see(call);
    const { store, operation } = call;
    // Each process reads the adjustments twice a second, for no request: a trace of each would say nothing.
    const isPoll = store === 'adjustments' && operation === 'read';
    const attributes = { 'db.system.name': 'redis', ...attributesOf(call) };
    const start = (): Span =>
      this.#tracer.startSpan(`headgate.store ${operation}`, { kind: SpanKind.CLIENT, attributes });
    this.#begun.set(call, { span: isPoll ? undefined : start(), startedAt: performance.now() });
  }

  onEnd(call: StoreCall): void {
    const begun = this.#begun.get(call);
    // It began before this instrumentation.
    if (begun === undefined) return;
    const { span, startedAt } = begun;
    const attributes = attributesOf(call);
    if (call.error !== undefined) {
      const type = errorTypeOf(call.error);
      attributes['error.type'] = type;
      // Not the error itself: the message of a Redis client's error can contain a key, and a key contains an account.
      span?.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#duration.record((performance.now() - startedAt) / 1_000, attributes);
    span?.end();
  }

  close(): void {
    this.#gauge.removeCallback(this.#observe);
  }

  #see({ store, breaker }: StoreCall): void {
    if (this.#known.has(breaker)) return;
    this.#known.add(breaker);
    const ofStore = this.#breakers.get(store) ?? new Set();
    this.#breakers.set(store, ofStore.add(new WeakRef(breaker)));
  }

  /** Of several stores the worst state. */
  readonly #observe = (result: ObservableResult): void => {
    for (const [store, breakers] of this.#breakers) {
      let worst: number | undefined;
      for (const reference of breakers) {
        const breaker = reference.deref();
        if (breaker === undefined) breakers.delete(reference);
        else worst = Math.max(worst ?? 0, STATES[breaker.state]);
      }
      if (worst !== undefined) result.observe(worst, { 'headgate.store': store });
    }
  };
}

function attributesOf({ store, operation }: StoreCall): Attributes {
  return { 'headgate.store': store, 'headgate.store.operation': operation };
}

/** Few values: the code of an error of headgate, or the name of the error's class. */
function errorTypeOf(error: unknown): string {
  if (isHeadgateError(error)) return error.code;
  return error instanceof Error ? error.name : '_OTHER';
}
