import { createCells } from 'headgate-bench/cells';
import { spread, table, whole } from 'headgate-bench/table';

const NOT_COVERED =
  'Not measured: the Redis server and its scripts, idempotency on Redis, framework adapters, keys that expire.';

/** @param figures `figures[workload].base` and `.head`, one `{ cost }` per round */
export function guardReport({ figures, limit, base, rounds, unit }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures).map((name) => ({ name, ratio: cells.ratio('cost', [name, 'head'], 'base') }));
  // NaN counts as slower: every comparison with it is false.
  const slower = workloads.filter(({ ratio }) => !(ratio.median <= limit)).map(({ name }) => name);
  const cost = (name, side) => whole(cells.figure('cost', name, side));
  const rows = workloads.map(({ name, ratio }) => [
    name,
    cost(name, 'base'),
    cost(name, 'head'),
    spread(ratio),
    slower.includes(name) ? '✗' : '✓',
  ]);
  const verdict = slower.length === 0 ? `No ratio is above ${limit}.` : `Above ${limit}: ${slower.join('; ')}.`;
  return {
    text: `The working tree compared with ${base}: ${unit} per call, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}. The ratio is taken within a round: median (least–most).

${table(['', 'base', 'head', 'ratio', ''], rows)}

${verdict} ${NOT_COVERED}`,
    isSlower: slower.length > 0,
  };
}
