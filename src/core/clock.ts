/** A source of time, so that tests can replace it (S15). */
export interface Clock {
  /** Integer milliseconds from any fixed origin. */
  now(): number;
}

/**
 * Milliseconds since 1970 when the process started, plus the time that the monotonic timer measured since.
 * A step of the wall clock does not change it (S15).
 */
export const monotonicClock: Clock = {
  now: () => Math.floor(origin + performance.now()),
};

const origin = performance.timeOrigin;

/** Milliseconds since 1970 by the clock of the machine, which can be set, and which goes on while it is suspended. */
export const wallClock: Clock = { now: () => Date.now() };
