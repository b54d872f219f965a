import { createCells } from './cells.mjs';
import { spread, table, whole } from './table.mjs';

const NOT_COVERED =
  'Not looked at: the Redis server and its scripts, idempotency on Redis, adapters of frameworks, what runs out.';

/** @param figures `figures[workload].base` and `.head`, a `{ cost }` for each round */
export function guardReport({ figures, limit, base, rounds, unit }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures).map((name) => ({ name, ratio: cells.ratio('cost', [name, 'head'], 'base') }));
  // What is no number is past any limit.
  const slower = workloads.filter(({ ratio }) => !(ratio.median <= limit)).map(({ name }) => name);
  const cost = (name, side) => whole(cells.figure('cost', name, side));
  const rows = workloads.map(({ name, ratio }) => [
    name,
    cost(name, 'base'),
    cost(name, 'head'),
    spread(ratio),
    slower.includes(name) ? '✗' : '✓',
  ]);
  const verdict = slower.length === 0 ? `Nothing is past ${limit}.` : `Past ${limit}: ${slower.join('; ')}.`;
  return {
    text: `The working tree beside ${base}: ${unit} a call, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}; the ratio of a round, median (least–most).

${table(['', 'base', 'head', 'ratio', ''], rows)}

${verdict} ${NOT_COVERED}`,
    isSlower: slower.length > 0,
  };
}
