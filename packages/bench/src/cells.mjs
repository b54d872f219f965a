import { median, spreadOf } from './statistics.mjs';
import { spread, table, whole } from './table.mjs';

/**
 * Medians over the rounds of `inRounds`. A cell is one workload of one candidate; it is undefined if it was not run.
 * The key of a cell in `figures[workload]` is the candidate's name, or `candidate on client`.
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
    /** The value and spread of a chart's bar. */
    spread(field, ...cell) {
      const measured = rounds(...cell);
      return measured && spreadOf(measured.map((figure) => figure[field]));
    },
    /** The ratio to `base`, another candidate, within each round; on the same client unless `baseClient` is given. */
    ratio(field, [workload, candidate, client], base, baseClient = client) {
      const above = rounds(workload, candidate, client);
      const below = rounds(workload, base, baseClient);
      if (above === undefined || below === undefined) return undefined;
      return spreadOf(above.map((figure, round) => figure[field] / below[round][field]));
    },
  };
}

/** A bar of a chart, as a list of one; an empty list if the cell was not run. */
export function bar(label, kind, spread) {
  if (spread === undefined) return [];
  const { median: value, least, most } = spread;
  return [{ label, kind, value, least, most }];
}

/**
 * A table of rates per second: each candidate that was run, with its ratio to the floor.
 * @param what counted things, for the head of the first column
 * @param candidates one per row: `[candidate, client, title, missing features]`
 */
export function ratesTable(what, cells, workloads, candidates) {
  const rows = candidates.map(([candidate, client, title, less = '']) => [
    title,
    ...workloads.map((workload) => {
      const perSecond = cells.figure('perSecond', workload, candidate, client);
      if (perSecond === undefined) return '';
      const ratio =
        candidate === 'floor' ? undefined : cells.ratio('perSecond', [workload, candidate, client], 'floor');
      return ratio ? `${whole(perSecond)} · ${spread(ratio)}` : whole(perSecond);
    }),
    less,
  ]);
  const wasRun = (row) => row.slice(1, -1).some((value) => value !== '');
  return table([`${what} per second`, ...workloads, 'does less'], rows.filter(wasRun));
}
