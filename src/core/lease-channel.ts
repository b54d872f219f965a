/** Name of the `node:diagnostics_channel` that publishes each {@link LeaseEvent} of the process. */
export const LEASE_CHANNEL = 'headgate:lease';

/**
 * What became of the units of leases (S32). `leased`: the store charged them ahead of requests. `used`: requests took
 * them, since the event before. `given_back`: they go back, or their windows are over. `lost`: they stay charged until
 * their windows are over, because the store did not answer.
 */
export interface LeaseEvent {
  readonly type: 'leased' | 'used' | 'given_back' | 'lost';
  readonly account: string;
  readonly route: string;
  /** A positive integer. */
  readonly units: number;
  /** Why they are lost; undefined if the failure policy decided, and for every other type. */
  readonly error?: unknown;
}
