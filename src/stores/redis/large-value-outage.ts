import { isHeadgateError, type StoreUnavailableError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';
import type { CircuitBreaker } from '../shared/circuit-breaker.ts';
import type { Commands } from './client.ts';

/** How long outcomes wait for a lost connection for large values, in milliseconds. Then they are stored without it. */
const RECONNECT_MS = 2_000;

/** The connections of a claim store. */
export interface ClaimConnections {
  readonly commands: Pick<Commands, 'isReady'>;
  readonly largeCommands: Pick<Commands, 'isReady'>;
  readonly largeBreaker: Pick<CircuitBreaker, 'state'>;
}

/** Judges why a large value could not be stored: whether it is worth waiting for the connection. */
export class LargeValueOutage {
  readonly #connections: ClaimConnections;
  /** When a call over the connection for small values last failed. */
  #smallFailedAt = Number.NEGATIVE_INFINITY;
  /** Since when only the connection for large values is down. */
  #onlyLargeDownSince: number | undefined;

  constructor(connections: ClaimConnections) {
    this.#connections = connections;
  }

  /** Call it when a call over the connection for small values failed. */
  smallCallFailed(): void {
    this.#smallFailedAt = monotonicClock.now();
  }

  /** Whether a large value that could not be stored was held up by an outage of the whole server, which is now over. */
  mayEndSoon(error: unknown): boolean {
    if (this.#isReconnecting()) return true;
    const { largeBreaker } = this.#connections;
    const wasSent = !isHeadgateError(error, 'store_unavailable') || (error as StoreUnavailableError).sent !== false;
    if (wasSent || largeBreaker.state === 'closed') return false;
    // The call that tests the connection decides. The next test is at most half a second away, and is sent.
    return largeBreaker.state === 'half-open' || monotonicClock.now() - this.#smallFailedAt < RECONNECT_MS;
  }

  /** Whether the connection for large values is down together with the other one, or has been for a moment only. */
  #isReconnecting(): boolean {
    const { commands, largeCommands } = this.#connections;
    const isDown = !largeCommands.isReady();
    if (!(isDown && commands.isReady())) {
      this.#onlyLargeDownSince = undefined;
      return isDown;
    }
    this.#onlyLargeDownSince ??= monotonicClock.now();
    return monotonicClock.now() - this.#onlyLargeDownSince < RECONNECT_MS;
  }
}
