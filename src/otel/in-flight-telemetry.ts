import type { Counter, Meter } from '@opentelemetry/api';
import type { InFlightEvent } from '../core/in-flight-channel.ts';

/** Makes a counter of the slots that did not last as long as their requests (S29). */
export class InFlightTelemetry {
  readonly #lost: Counter;

  constructor(meter: Meter) {
    this.#lost = meter.createCounter('headgate.in_flight.lost', {
      unit: '{slot}',
      description: 'Slots that ended before their requests, by what came of it: over, taken_again or given_up',
    });
  }

  onEvent({ type, route }: InFlightEvent): void {
    this.#lost.add(1, { 'headgate.route': route, 'headgate.in_flight.event': type });
  }
}
