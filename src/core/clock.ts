/** Time as a parameter (S15). */
export interface Clock {
  /** Integer milliseconds from any fixed origin. */
  now(): number;
}

/** Taken once: in Node the global is a getter, and time is asked for at every check. */
const { performance } = globalThis;
const origin = performance.timeOrigin;

/** Milliseconds since 1970 as they were when the process started, plus what the monotonic timer has counted since: a step of the wall clock does not move it (S15). */
export const monotonicClock: Clock = {
  now: () => Math.floor(origin + performance.now()),
};
