/** Name of the `node:diagnostics_channel` that publishes each {@link InFlightEvent} of the process. */
export const IN_FLIGHT_CHANNEL = 'headgate:in_flight';

/**
 * A slot of a request in flight did not last as long as its request (S29). `over`: its lease ended before it was renewed,
 * and there is no room to take it again, so one request more than the limit runs. `taken_again`: its lease ended before
 * it was renewed, and it was taken again; meanwhile another request may have run in its place. `given_up`: its request did
 * not end within `maxRunMs`, so it counts no more.
 */
export interface InFlightEvent {
  readonly type: 'over' | 'taken_again' | 'given_up';
  readonly account: string;
  readonly route: string;
}
