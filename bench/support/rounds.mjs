/**
 * Candidates in turns: in every round each of them does each of its workloads once, in the opposite order in every other round. The first round only warms up.
 * @param workloads `{ name, contestants: [{ name }] }`, and whatever `measure` asks for
 * @param measure `(contestant, workload, isWarmUp) => figure`
 * @returns `figures[workload][contestant]`: one for each round
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
 * Keeps what has every word of `only`, in one of its forms: `spread,64|256,headgate`; a candidate also by what stands before its comma. Floors stay, of the
 * clients that are left.
 * @param workloads their contestants are `{ client, candidate }`
 * @returns the same, its contestants with their names: `candidate`, or `candidate on client`
 */
export function chooseWorkloads(workloads, only = '') {
  const words = only === '' ? [] : only.split(',').map((word) => word.split('|'));
  return workloads
    .map(({ contestants, ...workload }) => {
      const fits = ({ client, candidate }) => {
        const known = [...Object.values(workload), client, candidate, candidate.split(',')[0]].map(String);
        return words.every((forms) => forms.some((form) => known.includes(form)));
      };
      const chosen = contestants.filter(fits);
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

/** Who takes part in any of the workloads, each once. */
export function contestantsOf(workloads) {
  return new Map(workloads.flatMap(({ contestants }) => contestants.map((one) => [one.name, one]))).values();
}
