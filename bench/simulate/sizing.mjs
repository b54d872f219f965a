import { simulate } from './simulate.mjs';

const MOST_TRIES = 8;
/** So many times the shards that the work needs: what is still too much then comes to one of them alone, and more don't help. */
const HOPELESS = 3;

/** How busy the shards of a simulated slice were: `mean`, and `most`, of the busiest one. */
export function utilisationOf({ shards, askedMicros }) {
  const busy = shards.map(({ busyMicros }) => busyMicros / askedMicros);
  return { mean: busy.reduce((sum, value) => sum + value, 0) / busy.length, most: Math.max(...busy) };
}

/**
 * A number of shards, found in steps by simulation, of which the busiest is no busier than `bound`: one server if that does, else a cluster. Where one
 * account is too much for any server, the busiest stays above.
 * @param settingsWith so many shards: settings of `simulate`, less how many decisions
 * @param decisionsFor how many decisions a slice with so many shards has
 * @returns `shards`, and the `slice` that shows it
 */
export function shardsNeeded(settingsWith, bound, decisionsFor) {
  const sliceWith = (shards) => simulate({ ...settingsWith(shards), decisions: decisionsFor(shards) });
  let [shards, slice] = [1, sliceWith(1)];
  for (let tries = 1; ; tries++) {
    const { mean, most } = utilisationOf(slice);
    const forWork = Math.ceil((mean * shards) / bound);
    if (most <= bound || tries === MOST_TRIES || shards >= HOPELESS * forWork) return { shards, slice };
    shards = Math.max(shards + 1, forWork, Math.ceil(shards * Math.sqrt(most / bound)));
    slice = sliceWith(shards);
  }
}
