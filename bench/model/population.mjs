import { mix } from './random.mjs';
import { createZipf, sumOverRanks, zipfTotal } from './zipf.mjs';

/** The hot account, if there is one. All other accounts are named by their rank. */
export const HOT = 0;
const SLOTS = 16_384;

/** The accounts and their request rates: by Zipf's law, and one hot account that makes `hotShare` of all requests. */
export function createPopulation({ accounts, exponent, perSecond, hotShare = 0, random }) {
  const sample = createZipf({ count: accounts, exponent, random });
  const total = zipfTotal(accounts, exponent);
  const perMicro = perSecond / 1e6;
  /** Requests per microsecond. */
  const rateOf = (account) =>
    account === HOT ? hotShare * perMicro : ((1 - hotShare) * perMicro * account ** -exponent) / total;
  return {
    rateOf,
    draw: () => (hotShare > 0 && random.uniform() < hotShare ? HOT : sample()),
    /**
     * Mean number of records that exist at one time. An account has a record while its longest window is open, which
     * starts with the first request after the end of the window before.
     */
    activeIn(micros) {
      const chance = (account) => 1 / (1 + 1 / (rateOf(account) * micros));
      return sumOverRanks(accounts, chance) + (hotShare > 0 ? chance(HOT) : 0);
    },
  };
}

/** Which of `count` shards has an account's records. Each shard has a range of slots, as in a Redis cluster. */
export const shardOf = (account, count) => Math.floor(((mix(account) % SLOTS) / SLOTS) * count);
