import { median, spreadOf } from './statistics.mjs';

/**
 * Medians over the rounds of `inRounds`; undefined where a cell was not run. A contestant is a candidate's name, or `candidate on client`.
 */
export function createCells(figures, defaultClient) {
  const rounds = (workload, candidate, client = defaultClient) =>
    figures[workload]?.[client === undefined ? candidate : `${candidate} on ${client}`];
  return {
    rounds,
    figure: (field, ...cell) => {
      const measured = rounds(...cell);
      return measured && median(measured.map((figure) => figure[field]));
    },
    /** What a bar of a chart shows. */
    spread(field, ...cell) {
      const measured = rounds(...cell);
      return measured && spreadOf(measured.map((figure) => figure[field]));
    },
    /** Within a round; `base` is a candidate, on the same client where none is named. */
    ratio(field, [workload, candidate, client], base, baseClient = client) {
      const above = rounds(workload, candidate, client);
      const below = rounds(workload, base, baseClient);
      if (above === undefined || below === undefined) return undefined;
      return spreadOf(above.map((figure, round) => figure[field] / below[round][field]));
    },
  };
}

/** A bar of a chart; nothing where a cell was not run. */
export function bar(label, kind, spread) {
  if (spread === undefined) return [];
  const { median: value, least, most } = spread;
  return [{ label, kind, value, least, most }];
}
