import { simulate } from './simulate.mjs';

const MOST_TRIES = 8;
/**
 * The search ends at this many times the shards that the work needs. A shard that is still too busy then has one
 * account that is too much for any shard, so more shards do not help.
 */
const GIVE_UP_FACTOR = 3;

/** How busy the shards of a simulated slice were: `mean` of all shards, `most` of the busiest one. */
export function utilisationOf({ shards, askedMicros }) {
  const busy = shards.map(({ busyMicros }) => busyMicros / askedMicros);
  return { mean: busy.reduce((sum, value) => sum + value, 0) / busy.length, most: Math.max(...busy) };
}

/**
 * Finds, by simulation in steps, a number of shards of which the busiest is at most `bound` busy: one server if that is
 * enough, else a cluster. If one account is too much for any server, the busiest shard stays above `bound`.
 * @param settingsWith `(shards)`: settings of `simulate` without `decisions`
 * @param decisionsFor `(shards)`: how many decisions are simulated
 * @returns `shards`, and the simulated `slice` with that many
 */
export function shardsNeeded(settingsWith, bound, decisionsFor) {
  const sliceWith = (shards) => simulate({ ...settingsWith(shards), decisions: decisionsFor(shards) });
  let [shards, slice] = [1, sliceWith(1)];
  for (let tries = 1; ; tries++) {
    const { mean, most } = utilisationOf(slice);
    const forWork = Math.ceil((mean * shards) / bound);
    if (most <= bound || tries === MOST_TRIES || shards >= GIVE_UP_FACTOR * forWork) return { shards, slice };
    shards = Math.max(shards + 1, forWork, Math.ceil(shards * Math.sqrt(most / bound)));
    slice = sliceWith(shards);
  }
}
