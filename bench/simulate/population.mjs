import { mix } from './random.mjs';
import { createZipf, sumOverRanks, zipfTotal } from './zipf.mjs';

/** The one hot account, where there is one; all others are named by their rank. */
export const HOT = 0;
const SLOTS = 16_384;

/** Who asks, and how often: accounts by Zipf's law, and a hot one that makes `hotShare` of all requests. */
export function createPopulation({ accounts, exponent, perSecond, hotShare = 0, random }) {
  const sample = createZipf({ count: accounts, exponent, random });
  const total = zipfTotal(accounts, exponent);
  const perMicro = perSecond / 1e6;
  /** Requests a microsecond. */
  const rateOf = (account) =>
    account === HOT ? hotShare * perMicro : ((1 - hotShare) * perMicro * account ** -exponent) / total;
  return {
    rateOf,
    draw: () => (hotShare > 0 && random.uniform() < hotShare ? HOT : sample()),
    /** Records that exist at a time: an account has one while its longest window runs, which starts with its first request after the last. */
    activeIn(micros) {
      const chance = (account) => 1 / (1 + 1 / (rateOf(account) * micros));
      return sumOverRanks(accounts, chance) + (hotShare > 0 ? chance(HOT) : 0);
    },
  };
}

/** Which of `count` shards has an account's records: slots are dealt out in ranges, as clusters do. */
export const shardOf = (account, count) => Math.floor(((mix(account) % SLOTS) / SLOTS) * count);
