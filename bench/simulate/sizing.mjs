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
 * The least number of shards, found by simulation, of which the busiest is no busier than `bound`: one server if that does, else a cluster.
 * @param settings of `simulate`
 * @param decisionsFor how many decisions a slice with so many shards has
 * @returns `shards`, and the `slice` that shows it
 */
export function shardsNeeded(settings, bound, decisionsFor) {
  const sliceWith = (shards) => simulate({ ...settings, shards, decisions: decisionsFor(shards) });
  let [shards, slice] = [1, sliceWith(1)];
  for (let tries = 1; ; tries++) {
    const { mean, most } = utilisationOf(slice);
    const forWork = Math.ceil((mean * shards) / bound);
    if (most <= bound || tries === MOST_TRIES || shards >= HOPELESS * forWork) return { shards, slice };
    shards = Math.max(shards + 1, forWork, Math.ceil(shards * Math.sqrt(most / bound)));
    slice = sliceWith(shards);
  }
}
