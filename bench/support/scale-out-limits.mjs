// What the processes of the topic hold: accounts that are never refused, and hot ones, each for one check of exactness.
export const ROUTE = 'GET /things';
export const TOKEN = 'a-token-of-the-benchmark';
export const ACCOUNTS = 10_000;
/** As many checks of exactness as a run has cells, and more. */
export const HOT_ACCOUNTS = 500;
/** Most that all processes together may let through in a window of a hot account. It has to outlast the check. */
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
