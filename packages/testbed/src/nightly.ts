/**
 * Whether this is the nightly run. It also runs the files `*.nightly.test.ts`, and the tests that ask for this value: those
 * that prove more than a change waits for.
 */
export const NIGHTLY = process.env.HEADGATE_NIGHTLY === '1';

/** The number of random inputs: 20 times as many at night. The seed differs per run, so the changes of a day add up. */
export const randomRuns = (perChange: number): number => (NIGHTLY ? 20 * perChange : perChange);
