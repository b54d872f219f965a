import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  type Meter,
  type MeterProvider,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { afterFile } from './after-file.ts';

/** A span as {@link recordTelemetry} sees it. */
export interface RecordedSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly attributes: Attributes;
  readonly isError: boolean;
  readonly isEnded: boolean;
}

/** One addition to a counter, one measurement of a histogram, or one value of a gauge. */
export interface Measured {
  readonly name: string;
  readonly value: number;
  readonly attributes: Attributes;
}

/** The context of OpenTelemetry follows the asynchronous one, as it does with every SDK for Node. */
class AsyncContext implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active = (): Context => this.#storage.getStore() ?? ROOT_CONTEXT;
  with = <Args extends unknown[], Fn extends (...args: Args) => ReturnType<Fn>>(
    active: Context,
    fn: Fn,
    thisArg?: ThisParameterType<Fn>,
    ...args: Args
  ): ReturnType<Fn> => this.#storage.run(active, () => fn.apply(thisArg, args));
  bind = <T>(active: Context, target: T): T =>
    (typeof target === 'function'
      ? (...args: unknown[]) => this.#storage.run(active, () => target(...args))
      : target) as T;
  enable = (): this => this;
  disable = (): this => this;
}

/** Providers that record their data, and the context of requests. The tests with the real SDK are in test/otel/. */
export function recordTelemetry() {
  context.setGlobalContextManager(new AsyncContext());
  afterFile(() => context.disable());
  const spans: RecordedSpan[] = [];
  const measured: Measured[] = [];
  const gauges = new Map<string, Set<(result: unknown) => void>>();
  const startSpan = (name: string, { attributes = {} }: SpanOptions = {}): Span => {
    const parent = (trace.getActiveSpan() as { recorded?: RecordedSpan } | undefined)?.recorded;
    const recorded = { name, parent: parent?.name, attributes: { ...attributes }, isError: false, isEnded: false };
    spans.push(recorded);
    const span = {
      recorded,
      setAttribute(key: string, value: string) {
        recorded.attributes[key] = value;
        return span;
      },
      setAttributes(more: Attributes) {
        Object.assign(recorded.attributes, more);
        return span;
      },
      setStatus() {
        recorded.isError = true;
        return span;
      },
      end() {
        recorded.isEnded = true;
      },
    };
    return span as unknown as Span;
  };
  const recorder = (name: string) => {
    const record = (value: number, attributes: Attributes = {}) => void measured.push({ name, value, attributes });
    return { add: record, record };
  };
  const gauge = (name: string) => {
    const callbacks = new Set<(result: unknown) => void>();
    gauges.set(name, callbacks);
    return {
      addCallback: (callback: (result: unknown) => void) => void callbacks.add(callback),
      removeCallback: (callback: (result: unknown) => void) => void callbacks.delete(callback),
    };
  };
  const meter = {
    createCounter: recorder,
    createHistogram: recorder,
    createObservableGauge: gauge,
  } as unknown as Meter;
  const tracerProvider = { getTracer: () => ({ startSpan }) as unknown as Tracer } satisfies TracerProvider;
  const meterProvider = { getMeter: () => meter } satisfies MeterProvider;
  return {
    tracerProvider,
    meterProvider,
    spans,
    measured,
    /** The values that a scrape finds now. */
    gauge: (name: string): Omit<Measured, 'name'>[] => {
      const values: Omit<Measured, 'name'>[] = [];
      const observe = (value: number, attributes: Attributes) => void values.push({ value, attributes });
      for (const callback of gauges.get(name) ?? []) callback({ observe });
      return values;
    },
    /** Runs a function in the span of a request, and returns the span's attributes. */
    async inSpan(name: string, run: () => unknown): Promise<Attributes> {
      const span = startSpan(name);
      await context.with(trace.setSpan(context.active(), span), async () => run());
      return (span as unknown as { recorded: RecordedSpan }).recorded.attributes;
    },
  };
}
