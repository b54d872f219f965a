// OpenTelemetry, with its types installed.
import { metrics, trace } from '@opentelemetry/api';
import { type Instrumentation, type InstrumentOptions, instrument } from 'headgate/otel';

const options: InstrumentOptions = {
  account: 'hash',
  meterProvider: metrics.getMeterProvider(),
  tracerProvider: trace.getTracerProvider(),
};
export const instrumentation: Instrumentation = instrument(options);
instrumentation.disable();
// @ts-expect-error not a form of an account
instrument({ account: 'md5' });
