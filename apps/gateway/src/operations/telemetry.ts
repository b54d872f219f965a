import { metrics, type ObservableCallback, type ProxyTracerProvider, trace } from '@opentelemetry/api';
import { instrument, isInstrumented } from 'headgate/otel';
import type { SharedLimitsState } from 'headgate/shared-limits';
import { hasMetering, hasTracing } from '../exchange/request-trace.ts';

/** Traces and metrics that the process reports to OpenTelemetry. */
export interface Telemetry {
  /** Reports how old the knowledge of the adjustments is. */
  watchLimits(state: () => Pick<SharedLimitsState, 'ageMs'>): void;
  /** Sends the recorded data, for at most a moment. Nothing more is recorded afterwards. Never rejects. */
  close(): Promise<void>;
}

/** A collector that is away must not keep the process from ending. */
const FLUSH_MS = 2_000;

/**
 * Reports the gateway to OpenTelemetry, if the process loaded an SDK. A program that is loaded with `--import` may
 * already call `instrument` with its own options; then it is not called again, since all would count twice.
 */
export function startTelemetry(): Telemetry | undefined {
  if (!hasTracing() && !hasMetering()) return undefined;
  const instrumentation = isInstrumented() ? undefined : instrument();
  const age = metrics.getMeter('headgate').createObservableGauge('headgate.limits.age', {
    unit: 's',
    description: 'Time since the adjustments of the limits were read',
  });
  let observe: ObservableCallback | undefined;
  return {
    watchLimits(state) {
      observe = (result) => {
        const { ageMs } = state();
        if (ageMs !== undefined) result.observe(ageMs / 1_000);
      };
      age.addCallback(observe);
    },
    async close() {
      const provider = trace.getTracerProvider() as Partial<ProxyTracerProvider>;
      const flushed = Promise.allSettled([provider.getDelegate?.() ?? provider, metrics.getMeterProvider()].map(flush));
      await Promise.race([flushed, new Promise((resolve) => setTimeout(resolve, FLUSH_MS).unref())]);
      // A gauge is only asked while it is instrumented.
      instrumentation?.disable();
      if (observe !== undefined) age.removeCallback(observe);
    },
  };
}

/** A provider of an SDK sends in batches. The interface of OpenTelemetry lacks this method. */
async function flush(provider: object): Promise<void> {
  await (provider as { forceFlush?(): Promise<void> }).forceFlush?.();
}
