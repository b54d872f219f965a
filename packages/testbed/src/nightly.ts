/**
 * Whether this is the nightly run. It also runs the files `*.nightly.test.ts`, and the tests that ask for this value: those
 * that prove more than a change waits for.
 */
export const NIGHTLY = process.env.HEADGATE_NIGHTLY === '1';
