// The part of the topic postgres about idempotency keys.
import { createCells, ratesTable } from 'headgate-bench/cells';
import { createFleet } from 'headgate-bench/fleet';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { atMost, targetRow } from 'headgate-bench/targets';

const ROWS = {
  'two statements': 'bare `INSERT` and `UPDATE`',
  claim: '**a claim with its outcome**',
  row: 'one `INSERT` of a handler',
  'row in a transaction': 'the same in `BEGIN` … `COMMIT`',
  'row with its key': '**the same with its key, in one transaction**',
};
/** What a row does less than headgate. */
const LESS = {
  'two statements': 'no lease, no fingerprint, no replay',
  row: 'no key',
  'row in a transaction': 'no key',
};

export const versions = () => ({ pg: versionOf('pg') });

export async function measure({ quick, only, profile, progress, url, ...given }) {
  const { rounds = quick ? 2 : 7, seconds = quick ? 0.2 : 0.6 } = given;
  const contestants = Object.keys(ROWS).map((candidate) => ({ candidate }));
  const cells = [1, 64].map((concurrency) => ({
    name: `keys ${concurrency}`,
    keys: 'spread',
    concurrency,
    contestants,
  }));
  const workloads = chooseWorkloads(cells, only);
  const fleet = createFleet(new URL('./postgres-worker.mjs', import.meta.url), profile);
  try {
    for (const { name, candidate } of contestantsOf(workloads)) {
      progress(`starting ${name}`);
      await fleet.start(name, { candidate, url, keyCount: 1 });
    }
    const figures = await inRounds({
      rounds,
      workloads,
      progress,
      measure: ({ name }, { keys, concurrency }, isWarmUp) =>
        fleet.ask(name, { keys, concurrency, seconds: isWarmUp ? Math.max(seconds, 1) : seconds }),
    });
    return { rounds, seconds, figures };
  } finally {
    await fleet.stop();
  }
}

export function report({ rounds, seconds, figures }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures);
  const rows = Object.entries(ROWS).map(([candidate, title]) => [candidate, undefined, title, LESS[candidate]]);
  return {
    markdown: `
Idempotency keys on the same server, in ${rounds} rounds of ${seconds} s per table cell. Each request uses a new key. The
number is how many are in flight, with a pool of 10 connections.

${ratesTable('requests', cells, workloads, rows)}`,
    // A transaction takes two statements more than its handler alone, so its time is shown, and not judged.
    targets: workloads.flatMap((workload) =>
      targetRow(
        `${workload}: time of a claim with its outcome, relative to two statements`,
        cells.ratio('micros', [workload, 'claim'], 'two statements'),
        atMost(1.3),
      ),
    ),
  };
}
