import type { Counter, Meter } from '@opentelemetry/api';
import type { LeaseEvent } from '../core/lease-channel.ts';

/** Makes a counter of what becomes of the units of leases. */
export class LeaseTelemetry {
  readonly #units: Counter;

  constructor(meter: Meter) {
    this.#units = meter.createCounter('headgate.lease.units', {
      unit: '{unit}',
      description: 'Units of leases, by what became of them: leased, used, given_back or lost',
    });
  }

  onEvent({ type, units }: LeaseEvent): void {
    this.#units.add(units, { 'headgate.lease.event': type });
  }
}
