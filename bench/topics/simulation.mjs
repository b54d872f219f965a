// Fleets of 10^6 to 10^9 accounts in virtual time, based on what the other topics measured. The model is in
// bench/model.

import { loadResult, PLACES } from 'headgate-bench/results';
import { whole } from 'headgate-bench/table';
import { readInputs } from '../model/inputs.mjs';
import { PARAMETERS, settingsOf } from '../model/parameters.mjs';
import { createPopulation } from '../model/population.mjs';
import { predict } from '../model/prediction.mjs';
import { createRandom } from '../model/random.mjs';
import { shardsNeeded, utilisationOf } from '../model/sizing.mjs';

export { simulationReport as report } from '../support/simulation-report.mjs';

/** At most six digits, because the results file stores no more. */
const SEED = 202_601;
const POPULATIONS = [1e6, 1e7, 1e8, 1e9];
const VARIED = 1e8;
const PREDICTED = 64;

/**
 * Each variation changes one parameter. The keys are the names in bench/results; the report has titles for the page.
 */
const VARIATIONS = {
  'as above': {},
  'accounts more unlike: exponent 1': { exponent: 1 },
  'bursts: 10 requests of an account at one instant': { burst: 10 },
  'a slower network: five times the way': { oneWayMedian: 5 * PARAMETERS.oneWayMedian },
  'no memory of denials': { denialMicros: 0, hotShare: PARAMETERS.hotShare },
  'with that memory, for comparison': { hotShare: PARAMETERS.hotShare },
};

export async function measure({ quick, progress }) {
  const { values, sources, points, limiter } = readInputs(measured(quick));
  const decisions = quick ? 30_000 : 300_000;
  const fleets = [];
  const simulateFleet = (name, accounts, { hotShare = 0, ...changes } = {}) => {
    progress(name);
    const parameters = { ...PARAMETERS, ...changes };
    const settingsWith = (shards) => ({
      seed: SEED,
      ...settingsOf({ accounts, hotShare, shards, values, parameters }),
    });
    // Gateways learn of a hot account's rejection together and forget it together. A slice that is shorter than
    // `denialMicros` would show one phase of this cycle only.
    const leastSeconds = hotShare > 0 && !quick ? parameters.denialMicros / 1e6 : 0;
    return { name, accounts, hotShare, ...fleet(settingsWith, { decisions, leastSeconds }) };
  };
  for (const accounts of POPULATIONS) {
    for (const hotShare of [0, PARAMETERS.hotShare]) {
      fleets.push(
        simulateFleet(`${whole(accounts)} accounts${hotShare > 0 ? ', one hot' : ''}`, accounts, { hotShare }),
      );
    }
  }
  const variations = Object.entries(VARIATIONS).map(([name, changes]) => simulateFleet(name, VARIED, changes));
  progress('prediction');
  const prediction = predict({ points, limiter, concurrency: PREDICTED, seed: SEED });
  return { seed: SEED, decisions, parameters: PARAMETERS, values, sources, fleets, variations, prediction };
}

/** Results of the other topics: the published ones; a quick run prefers those of earlier quick runs. */
function measured(quick) {
  const { published, draft } = PLACES;
  const places = quick ? [draft, published] : [published];
  return (topic) => places.map((place) => loadResult(place, topic)).find((result) => result !== undefined);
}

function fleet(settingsWith, { decisions, leastSeconds }) {
  const { perSecond } = settingsWith(1);
  // Enough decisions per shard that no shard looks busy only by chance. The slice with one server only shows how many
  // shards are needed, so it may be short.
  const decisionsFor = (shards) =>
    Math.ceil(Math.max(decisions, (decisions / 100) * shards, shards > 1 ? leastSeconds * perSecond : 0));
  const { shards, slice } = shardsNeeded(settingsWith, PARAMETERS.shardUtilisation, decisionsFor);
  const settings = settingsWith(shards);
  const sum = (field) => slice.shards.reduce((total, shard) => total + shard[field], 0);
  const { latency } = slice;
  return {
    perSecond: settings.perSecond,
    gateways: settings.gateways,
    shards,
    utilisation: utilisationOf(slice),
    sliceSeconds: slice.askedMicros / 1e6,
    serverMicros: sum('busyMicros') / slice.decisions,
    records: recordsOf(settings),
    refused: 1 - slice.accepted / slice.decisions,
    local: slice.local / slice.decisions,
    latencyMs: Object.fromEntries(Object.entries(latency).map(([name, micros]) => [name, micros / 1_000])),
  };
}

/** Records are counted at the mean rate of a day, not at its peak, because the longest window lasts a day. */
function recordsOf({ perSecond, peakFactor, longestWindowMicros, ...settings }) {
  const population = createPopulation({ ...settings, perSecond: perSecond / peakFactor, random: createRandom(SEED) });
  return population.activeIn(longestWindowMicros);
}
