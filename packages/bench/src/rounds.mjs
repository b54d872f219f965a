/**
 * Lets candidates take turns. In every round each candidate does each of its workloads once; every other round uses the
 * opposite order. The first round only warms up.
 * @param workloads `{ name, contestants: [{ name }] }`, and anything else that `measure` needs
 * @param measure `(contestant, workload, isWarmUp) => figure`
 * @returns `figures[workload][contestant]`: a list with one figure per round
 */
export async function inRounds({ rounds, workloads, measure, progress, before = () => {} }) {
  const figures = {};
  for (const { name, contestants } of workloads) {
    figures[name] = Object.fromEntries(contestants.map((contestant) => [contestant.name, []]));
  }
  for (let round = 0; round <= rounds; round++) {
    await before(round);
    for (const workload of workloads) {
      progress(`${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}: ${workload.name}`);
      const { contestants } = workload;
      for (const contestant of round % 2 === 0 ? contestants : contestants.toReversed()) {
        const figure = await measure(contestant, workload, round === 0);
        if (round > 0) figures[workload.name][contestant.name].push(figure);
      }
    }
  }
  return figures;
}

/**
 * Selects the workloads and contestants that match every word of `only`, for example `spread,64|256,headgate`; a `|`
 * lists alternatives. A candidate also matches by the part of its name before the comma. The floor of each selected
 * client stays.
 * @param workloads their contestants are `{ client, candidate }`
 * @returns the selected workloads, their contestants with a `name`: `candidate`, or `candidate on client`
 */
export function chooseWorkloads(workloads, only = '') {
  const words = only === '' ? [] : only.split(',').map((word) => word.split('|'));
  return workloads
    .map(({ contestants, ...workload }) => {
      const matches = ({ client, candidate }) => {
        const known = [...Object.values(workload), client, candidate, candidate.split(',')[0]].map(String);
        return words.every((alternatives) => alternatives.some((word) => known.includes(word)));
      };
      const chosen = contestants.filter(matches);
      const isNeeded = (one) =>
        chosen.includes(one) ||
        (one.candidate.startsWith('floor') && chosen.some(({ client }) => client === one.client));
      return { ...workload, contestants: contestants.filter(isNeeded).map(named) };
    })
    .filter(({ contestants }) => contestants.length > 0);
}

const named = ({ client, candidate }) => ({
  name: client === undefined ? candidate : `${candidate} on ${client}`,
  client,
  candidate,
});

/** The contestants of all workloads, each once. */
export function contestantsOf(workloads) {
  return new Map(workloads.flatMap(({ contestants }) => contestants.map((one) => [one.name, one]))).values();
}
