/** Time as a parameter (S15). */
export interface Clock {
  /** Integer milliseconds from any fixed origin. */
  now(): number;
}

/** Milliseconds since 1970 as they were when the process started, plus what the monotonic timer has counted since: a step of the wall clock does not move it (S15). */
export const monotonicClock: Clock = {
  now: () => Math.floor(origin + performance.now()),
};

const origin = performance.timeOrigin;
