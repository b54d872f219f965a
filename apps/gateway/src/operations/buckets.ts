/** The buckets of histograms, in seconds: of calls to a store, and of all that waits for another program's answer. */
export const FAST = [0.000_005, 0.000_02, 0.000_1, 0.000_5, 0.001, 0.005, 0.02, 0.1, 0.5];
export const SLOW = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
