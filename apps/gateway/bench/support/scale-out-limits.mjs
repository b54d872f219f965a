// The accounts and limits of the topic scale-out: accounts that are never rejected, and hot accounts, each for one
// check of exactness.
export const ROUTE = 'GET /things';
export const TOKEN = 'a-token-of-the-benchmark';
export const ACCOUNTS = 10_000;
/** More than the checks of exactness in a run. */
export const HOT_ACCOUNTS = 500;
/**
 * How many requests all processes together may let through in a window of a hot account. The window outlasts the check.
 */
export const HOT_MOST = 500;

const windows = (max, ...durations) => durations.map((duration) => `${max}/${duration}`);
const PLENTY = 1_000_000_000;

export const LIMITS = { allMethods: windows(PLENTY, '2m', '2d'), routes: { [ROUTE]: windows(PLENTY, '1m', '1d') } };
export const HOT_LIMITS = {
  allMethods: windows(HOT_MOST, '2h', '2d'),
  routes: { [ROUTE]: windows(HOT_MOST, '1h', '1d') },
};

export const accountName = (i) => `account_${i}`;
export const hotName = (i) => `hot_${i}`;
