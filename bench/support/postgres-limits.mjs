// The part of the topic postgres about limits.
import { bar, createCells, ratesTable } from 'headgate-bench/cells';
import { createFleet } from 'headgate-bench/fleet';
import { peerVersions } from 'headgate-bench/peers';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';

const KEY_COUNT = 500;
const SIZED_KEYS = 50_000;
const PEERS = ['rate-limiter-flexible', '@acpr/rate-limit-postgresql'];
const ROWS = {
  floor: 'bare `INSERT … ON CONFLICT DO UPDATE`',
  headgate: '**headgate, four windows**',
  against: 'headgate from `--against`',
  rlf: 'rate-limiter-flexible, one window',
  'rlf four': 'rate-limiter-flexible, four windows',
  'express-rate-limit store': '@acpr/rate-limit-postgresql, one window',
  redis: 'headgate on Redis, four windows',
};
/** What a row does less than headgate. */
const LESS = {
  floor: 'one counter without a window, and no decision',
  rlf: 'one window; charges rejected requests',
  'rlf four': 'four separate windows: a request that one rejects is charged by the others; four statements',
  'express-rate-limit store': 'one window; charges rejected requests; only counts, the middleware compares',
  redis: 'another server',
};

export const versions = () => ({ pg: versionOf('pg'), ...peerVersions(PEERS) });

export async function measure({ quick, against, only, profile, progress, url, redisPort, ...given }) {
  const { rounds = quick ? 2 : 7, seconds = quick ? 0.2 : 0.6 } = given;
  const workloads = chooseWorkloads(allCells(against !== undefined), only);
  const fleet = createFleet(new URL('./postgres-worker.mjs', import.meta.url), profile);
  try {
    for (const { name, candidate } of contestantsOf(workloads)) {
      progress(`starting ${name}`);
      await fleet.start(name, { candidate, url, redisPort, keyCount: KEY_COUNT, against });
    }
    const figures = await inRounds({
      rounds,
      workloads,
      progress,
      measure: ({ name }, { keys, concurrency }, isWarmUp) =>
        fleet.ask(name, { keys, concurrency, seconds: isWarmUp ? Math.max(seconds, 1) : seconds }),
    });
    progress(`filling the table with ${SIZED_KEYS} accounts`);
    await fleet.start('sized', { candidate: 'headgate', url, redisPort, keyCount: SIZED_KEYS, schema: 'sized' });
    const size = await fleet.ask('sized', { fill: SIZED_KEYS });
    return { rounds, seconds, keyCount: KEY_COUNT, figures, size };
  } finally {
    await fleet.stop();
  }
}

function allCells(against) {
  const headgate = against ? ['headgate', 'against'] : ['headgate'];
  const on = (...candidates) => candidates.map((candidate) => ({ candidate }));
  const peers = ['rlf', 'rlf four', 'express-rate-limit store'];
  const cell = (keys, concurrency, contestants) => ({ name: `${keys} ${concurrency}`, keys, concurrency, contestants });
  return [
    cell('spread', 1, on('floor', ...headgate, 'rlf', 'redis')),
    cell('spread', 64, on('floor', ...headgate, ...peers, 'redis')),
    cell('hot', 64, on('floor', ...headgate, ...peers, 'redis')),
  ];
}

export function report({ rounds, seconds, keyCount, figures, size }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures);
  const rows = Object.entries(ROWS).map(([candidate, title]) => [candidate, undefined, title, LESS[candidate]]);
  return {
    markdown: `
One PostgreSQL server with the settings of a new one; one process per candidate, each with a pool of 10 connections of
pg. All candidates take turns, in ${rounds} rounds of ${seconds} s per table cell.

- *spread*: ${whole(keyCount)} keys in a fixed random order. *hot*: one key. The number is how many checks are in flight.
- Figures are medians. After the dot is the ratio to the bare statement within a round: median (least–most).
- The bare statement is one call per decision. It is not a lower bound if decisions of headgate share calls.

${ratesTable('decisions', cells, workloads, rows)}

The table of ${whole(size.rows)} accounts with four windows each takes ${whole(size.bytes / size.rows)} bytes per account,
its indexes included: ${whole(size.bytes / size.rows / 4)} bytes per window.`,
    targets: targets(cells, size),
    chart: {
      title: 'Decisions per second on one PostgreSQL server',
      unit: 'decisions per second',
      scale: 'log',
      better: 'more',
      panels: workloads.map((workload) => ({
        title: workload,
        bars: Object.keys(ROWS).flatMap((row) =>
          bar(ROWS[row].replaceAll(/[*`]/g, ''), kindOf(row), cells.spread('perSecond', workload, row)),
        ),
      })),
    },
  };
}

const kindOf = (row) => ({ floor: 'floor', headgate: 'ours', against: 'ours', redis: 'ours' })[row] ?? 'peer';

function targets(cells, size) {
  const speed = (workload, base, target, title) =>
    targetRow(`${workload}: ${title}`, cells.ratio('perSecond', [workload, 'headgate'], base), target);
  return [
    ...['spread 64', 'hot 64'].flatMap((workload) => [
      ...speed(workload, 'floor', atLeast(0.7), 'relative to the floor'),
      ...speed(workload, 'rlf four', atLeast(3), 'relative to four windows of rate-limiter-flexible'),
    ]),
    ...targetRow(
      'spread 64: time per decision, relative to headgate on Redis',
      cells.ratio('micros', ['spread 64', 'headgate'], 'redis'),
      atMost(4),
    ),
    ...targetRow('bytes per window, with four windows per account', size.bytes / size.rows / 4, atMost(250), whole),
  ];
}
