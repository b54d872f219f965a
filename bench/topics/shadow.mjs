// What a shadow costs a request: the time until the caller has its decision, with a candidate and without one. Both
// limiters take turns in one process.
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { spreadOf } from 'headgate-bench/statistics';
import { spread, table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';

const ADDED_MOST_NS = 1_000;

export async function measure({ quick, progress, rounds = quick ? 3 : 15 }) {
  const samples = quick ? 300 : 2_000;
  progress(`${rounds} rounds`);
  const { figures, total } = inFreshProcess(new URL('../support/shadow-worker.mjs', import.meta.url), [
    rounds,
    samples,
  ]);
  if (total.dropped + total.failed > 0) throw new Error(`the candidate did not decide: ${JSON.stringify(total)}`);
  return { rounds, samples, figures };
}

export function report({ rounds, samples, figures }) {
  const rows = Object.entries(figures).map(([workload, all]) => {
    const [least, median] = ['least', 'median'].map((name) => ({
      without: spreadOf(all.map((round) => round.without[name])),
      with: spreadOf(all.map((round) => round.with[name])),
      added: spreadOf(all.map((round) => round.with[name] - round.without[name])),
      ratio: spreadOf(all.map((round) => round.with[name] / round.without[name])),
    }));
    return { workload, least, median };
  });
  return {
    title: 'Shadow: what a candidate adds to a request',
    markdown: `
Nanoseconds until the caller goes on with its decision, in memory with two windows: the median of ${rounds} rounds. Each
round has ${whole(samples)} samples with a candidate and as many without one, which take turns in one process; a sample
is one turn of the event loop with 1 or 16 calls. *Best* is the least sample of a round, *median* its median. After the
dot is what the candidate adds (least–most). Its own check begins in a later turn, and is not part of the time.

${table(
  ['', 'best without', 'best with', 'median without', 'median with', 'ratio of the medians'],
  rows.map(({ workload, least, median }) => [
    workload,
    ...[least, median].flatMap((each) => [
      whole(each.without.median),
      `${whole(each.with.median)} · +${nanoseconds(each.added)}`,
    ]),
    spread(median.ratio),
  ]),
)}`,
    targets: rows.flatMap(({ workload, median }) =>
      targetRow(`${workload}: ns that a candidate adds`, median.added, atMost(ADDED_MOST_NS, '1,000'), nanoseconds),
    ),
  };
}

const nanoseconds = ({ median, least, most }) => `${whole(median)} (${whole(least)}–${whole(most)})`;
