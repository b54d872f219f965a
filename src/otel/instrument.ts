/**
 * Spans and metrics of gates and stores, for OpenTelemetry.
 * @module headgate/otel
 */

import { diag, type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import { builtinModule } from '../base/builtin-module.ts';
import { OptionError } from '../base/errors.ts';
import { checkOptions } from '../base/options.ts';
import { IN_FLIGHT_CHANNEL, type InFlightEvent } from '../core/in-flight-channel.ts';
import { LEASE_CHANNEL, type LeaseEvent } from '../core/lease-channel.ts';
import { STORE_CHANNEL, type StoreCall } from '../core/store-channel.ts';
import { GATE_CHANNEL, type GateEvent } from '../gate/events.ts';
import { GateTelemetry } from './gate-telemetry.ts';
import { InFlightTelemetry } from './in-flight-telemetry.ts';
import { LeaseTelemetry } from './lease-telemetry.ts';
import { StoreTelemetry } from './store-telemetry.ts';

/** How spans name the account. */
export type AccountForm = 'none' | 'hash' | 'plain';

/** Options of {@link instrument}. */
export interface InstrumentOptions {
  /**
   * How spans name the account in `headgate.account`: not at all, as the first 16 hex digits of its SHA-256, or as it
   * is. A hash of a value that can be guessed, such as an email address, can be found by trying. Metrics never name it.
   * @default 'none'
   */
  readonly account?: AccountForm;
  /** @default the global one */
  readonly meterProvider?: MeterProvider;
  /** @default the global one */
  readonly tracerProvider?: TracerProvider;
}

/** A running instrumentation. */
export interface Instrumentation {
  /** Stops it. Later calls do nothing. */
  disable(): void;
}

/** The functions of `node:diagnostics_channel` that are used here. */
interface DiagnosticsChannel {
  subscribe(name: string, listener: (message: unknown) => void): void;
  unsubscribe(name: string, listener: (message: unknown) => void): void;
}

interface Crypto {
  createHash(name: 'sha256'): { update(text: string): { digest(encoding: 'hex'): string } };
}

const SCOPE = 'headgate';
const ACCOUNT_FORMS: readonly AccountForm[] = ['none', 'hash', 'plain'];
const HASH_DIGITS = 16;
const OPTIONS = ['account', 'meterProvider', 'tracerProvider'];
/** How many instrumentations run in this process, whichever copy of this module started them. */
const running = globalThis as { [key: symbol]: number | undefined };
const RUNNING = Symbol.for('headgate.otel.running');

/**
 * Reports every gate and every Redis store of this process to OpenTelemetry: attributes on the active span, a span per
 * call of a store, and metrics. Call it once, after the SDK started.
 * @example
 * ```ts
 * sdk.start();
 * const instrumentation = instrument({ account: 'hash' });
 * ```
 * @throws OptionError, or Error if the runtime lacks `node:diagnostics_channel`
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  checkOptions(options, OPTIONS, 'options');
  const { account = 'none', meterProvider = metrics, tracerProvider = trace } = options;
  if (!ACCOUNT_FORMS.includes(account))
    throw new OptionError('options.account', account, `must be ${ACCOUNT_FORMS.map((form) => `'${form}'`).join(', ')}`);
  checkProvider('meterProvider', meterProvider, 'getMeter');
  checkProvider('tracerProvider', tracerProvider, 'getTracer');
  const channels = builtinModule<DiagnosticsChannel>('node:diagnostics_channel');
  if (channels === undefined)
    throw new Error(
      'headgate/otel needs node:diagnostics_channel, which this runtime does not have: do not call it here',
    );
  const meter = meterProvider.getMeter(SCOPE);
  const gates = new GateTelemetry(meter, accountWriter(account));
  const leases = new LeaseTelemetry(meter);
  const inFlight = new InFlightTelemetry(meter);
  const stores = new StoreTelemetry(meter, tracerProvider.getTracer(SCOPE));
  const listeners: readonly [string, (message: unknown) => void][] = [
    [GATE_CHANNEL, guarded((event: GateEvent) => gates.onEvent(event))],
    [LEASE_CHANNEL, guarded((event: LeaseEvent) => leases.onEvent(event))],
    [IN_FLIGHT_CHANNEL, guarded((event: InFlightEvent) => inFlight.onEvent(event))],
    [`tracing:${STORE_CHANNEL}:start`, guarded((call: StoreCall) => stores.onStart(call))],
    [`tracing:${STORE_CHANNEL}:asyncEnd`, guarded((call: StoreCall) => stores.onEnd(call))],
  ];
  for (const [name, listener] of listeners) channels.subscribe(name, listener);
  addRunning(1);
  let isRunning = true;
  return {
    disable() {
      if (!isRunning) return;
      isRunning = false;
      addRunning(-1);
      for (const [name, listener] of listeners) channels.unsubscribe(name, listener);
      stores.close();
    },
  };
}

/**
 * Whether this process is instrumented, by this copy of the package or by another one. A second time counts all twice.
 */
export function isInstrumented(): boolean {
  return (running[RUNNING] ?? 0) > 0;
}

function addRunning(count: number): void {
  running[RUNNING] = (running[RUNNING] ?? 0) + count;
}

/** Node ends the process if a listener of a channel throws. Telemetry must never do that. */
function guarded<Message>(listener: (message: Message) => void): (message: unknown) => void {
  return (message) => {
    try {
      listener(message as Message);
    } catch (error) {
      diag.error('headgate/otel failed', error);
    }
  };
}

function checkProvider(name: string, provider: unknown, method: string): void {
  if (typeof Object(provider)[method] === 'function') return;
  throw new OptionError(`options.${name}`, provider, `must have the method ${method} of OpenTelemetry`);
}

/** Returns the form of an account in spans; undefined for none. */
function accountWriter(form: AccountForm): (account: string) => string | undefined {
  if (form === 'none') return () => undefined;
  if (form === 'plain') return (account) => account;
  const crypto = builtinModule<Crypto>('node:crypto');
  return (account) => crypto?.createHash('sha256').update(account).digest('hex').slice(0, HASH_DIGITS);
}
