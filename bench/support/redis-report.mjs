import { bar, createCells, ratesTable } from 'headgate-bench/cells';
import { table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';

const CLIENTS = ['ioredis', 'auto-pipelined', 'node-redis'];
const ROWS = {
  floor: 'bare EVALSHA of `return 1`',
  headgate: '**headgate, four windows**',
  against: 'headgate from `--against`',
  rlf: 'rate-limiter-flexible, one window',
  'rlf union': 'rate-limiter-flexible, union of four',
  'rate-limit-redis': 'rate-limit-redis, one window',
  'async-ratelimiter': 'async-ratelimiter, one window',
};
const [ONE_WINDOW, UNION] = ['one window of rate-limiter-flexible', 'the union of four of rate-limiter-flexible'];
/** What a row does less than headgate. */
const LESS = {
  floor: 'only the round trip',
  rlf: 'one window; charges rejected requests',
  'rlf union': 'four separate windows: a request that one rejects is charged by the others; four calls',
  'rate-limit-redis': 'one window; charges rejected requests; only counts, the middleware compares',
  'async-ratelimiter': 'one window, by the client’s clock; stores the time of every request',
};
/** The peer that cannot take part, and why. */
const LEFT_OUT = `@upstash/ratelimit is left out. Its client speaks HTTP to Upstash. If an adapter sends its scripts to a plain Redis,
Redis rejects them, because they begin with a flag (\`allow-key-locking\`) that only Upstash knows.`;

export function redisReport({ rounds, seconds, keyCount, figures }) {
  const cells = createCells(figures, 'ioredis');
  const workloads = Object.keys(figures);
  return {
    title: 'Redis, four windows',
    markdown: `
One Redis server; one connection and one process per candidate. All candidates take turns, in ${rounds} rounds of
${seconds} s per table cell.

- *spread*: ${whole(keyCount)} keys in a fixed random order. *hot*: one key. *denied*: one key whose requests are all
  rejected.
- The number is how many checks are in flight.
- Figures are medians. After the dot is the ratio to the bare EVALSHA on the same client within a round: median
  (least–most).
- A bare EVALSHA is one call per decision. It is not a lower bound if decisions of headgate share calls.

${decisionTable(cells, workloads)}

${LEFT_OUT}

The cost of a decision, at the highest concurrency that was run: server time from \`INFO commandstats\`, and CPU of the
client’s process.

${costTable(cells)}`,
    targets: targets(cells),
    chart: {
      title: 'Decisions per second on one Redis server, ioredis',
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

const kindOf = (row) => ({ floor: 'floor', headgate: 'ours', against: 'ours' })[row] ?? 'peer';

function decisionTable(cells, workloads) {
  const candidates = CLIENTS.flatMap((client) =>
    Object.entries(ROWS).map(([candidate, title]) => [candidate, client, `${title}, ${client}`, LESS[candidate]]),
  );
  return ratesTable('decisions', cells, workloads, candidates);
}

function costTable(cells) {
  const rows = [];
  for (const client of CLIENTS) {
    for (const [candidate, title] of Object.entries(ROWS)) {
      const workload = [256, 64, 16, 1]
        .map((concurrency) => `spread ${concurrency}`)
        .find((name) => cells.rounds(name, candidate, client));
      if (workload === undefined) continue;
      const of = (field) => cells.figure(field, workload, candidate, client).toFixed(2);
      rows.push([
        `${title}, ${client}`,
        of('callsPerDecision'),
        of('microsPerCall'),
        of('microsPerDecision'),
        of('cpuMicros'),
      ]);
    }
  }
  return table(
    ['', 'calls per decision', 'server, µs per call', 'server, µs per decision', 'client CPU, µs per decision'],
    rows,
  );
}

function targets(cells) {
  const speed = (workload, client, base, least, title) =>
    targetRow(
      `${workload}, ${client}: relative to ${title}`,
      cells.ratio('perSecond', [workload, 'headgate', client], base),
      atLeast(least),
    );
  const denied = targetRow(
    'denied 256, ioredis: decisions per second',
    cells.spread('perSecond', 'denied 256', 'headgate'),
    atLeast(1e6, '1,000,000'),
    ({ median }) => whole(median),
  );
  return [
    ...CLIENTS.flatMap((client) => [
      ...[1, 16, 64, 256].flatMap((concurrency) => [
        ...speed(`spread ${concurrency}`, client, 'floor', 0.85, 'the floor'),
        ...speed(`spread ${concurrency}`, client, 'rlf', 1, ONE_WINDOW),
        ...(concurrency >= 64 ? speed(`spread ${concurrency}`, client, 'rlf union', 3.5, UNION) : []),
      ]),
      ...speed('hot 256', client, 'floor', 5, 'the floor'),
    ]),
    ...denied,
    // With 1 check in flight a call has one decision; with more, a call may have several.
    ...[1, 64, 256].flatMap((concurrency) =>
      targetRow(
        `spread ${concurrency}, ioredis: server µs per decision, relative to ${ONE_WINDOW}`,
        cells.ratio('microsPerDecision', [`spread ${concurrency}`, 'headgate'], 'rlf'),
        atMost(1.8),
      ),
    ),
  ];
}
