import { median } from './report.mjs';

/** Medians over the rounds of an interleaved run; undefined where a cell was not run. */
export function createCells(figures, defaultClient) {
  const rounds = (workload, candidate, client = defaultClient) => figures[workload]?.[`${candidate} on ${client}`];
  return {
    rounds,
    figure: (field, ...cell) => {
      const measured = rounds(...cell);
      return measured && median(measured.map((figure) => figure[field]));
    },
    /** Within a round; `base` is a candidate, on the same client where none is named. */
    ratio(field, [workload, candidate, client], base, baseClient = client) {
      const above = rounds(workload, candidate, client);
      const below = rounds(workload, base, baseClient);
      if (above === undefined || below === undefined) return undefined;
      const values = above.map((figure, round) => figure[field] / below[round][field]);
      return { median: median(values), least: Math.min(...values), most: Math.max(...values) };
    },
  };
}

export const whole = (value) => Math.round(value).toLocaleString('en');
export const spread = ({ median: middle, least, most }) =>
  `${middle.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
