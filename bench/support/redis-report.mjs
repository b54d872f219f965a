import { bar, createCells, ratesTable } from './cells.mjs';
import { verdict } from './statistics.mjs';
import { spread, table, whole } from './table.mjs';

const CLIENTS = ['ioredis', 'auto-pipelined', 'node-redis'];
const ROWS = {
  floor: 'bare EVALSHA of `return 1`',
  headgate: '**headgate, four windows**',
  against: 'headgate of `--against`',
  rlf: 'rate-limiter-flexible, one window',
  'rlf union': 'rate-limiter-flexible, union of four',
  'rate-limit-redis': 'rate-limit-redis, one window',
  'async-ratelimiter': 'async-ratelimiter, one window',
};
/** Where a row does less than headgate. */
const LESS = {
  floor: 'everything but the round trip',
  rlf: 'one window; charges refused requests',
  'rlf union': 'four windows apart: a request refused by one is charged by the others; four calls',
  'rate-limit-redis': 'one window; charges refused requests; only counts, the middleware compares',
  'async-ratelimiter': 'one window, by the client’s clock; keeps the time of every request',
};
/** Whoever cannot take part, and why. */
const LEFT_OUT = `@upstash/ratelimit is left out: its client speaks HTTP to Upstash, and through an adapter on a plain Redis its scripts are refused, because they begin with a flag
(\`allow-key-locking\`) that only Upstash knows.`;

export function redisReport({ rounds, seconds, keyCount, figures }) {
  const cells = createCells(figures, 'ioredis');
  const workloads = Object.keys(figures);
  return {
    title: 'Redis, four windows',
    markdown: `
One server, one connection and one process for each candidate; ${rounds} rounds of ${seconds} s a cell, all candidates in turns. ${whole(keyCount)} keys in a fixed random
order; the number is how many checks are under way at a time. Medians; a ratio is to the bare EVALSHA on the same client within a round, with the least and the most of the rounds behind it.
That is a call a decision: where headgate's decisions share calls, it is no lower bound.

${decisionTable(cells, workloads)}

${LEFT_OUT}

What a decision costs, at the highest concurrency that was run: \`INFO commandstats\` of the server, CPU of the client's process.

${costTable(cells)}`,
    targets: targets(cells),
    chart: {
      title: 'Decisions a second on one Redis server, ioredis',
      unit: 'decisions a second',
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
  return table(['', 'calls', 'server, µs a call', 'server, µs a decision', 'client CPU, µs a decision'], rows);
}

function targets(cells) {
  const rows = [];
  const add = (what, value, wanted, isMet, show = spread) => {
    if (value !== undefined) rows.push({ what, measured: show(value), wanted, ...verdict(value, isMet) });
  };
  const against = (workload, client, base, least, title) =>
    add(
      `${workload}, ${client}, to ${title}`,
      cells.ratio('perSecond', [workload, 'headgate', client], base),
      `≥ ${least}`,
      (value) => value >= least,
    );
  for (const client of CLIENTS) {
    for (const concurrency of [1, 16, 64, 256]) {
      const workload = `spread ${concurrency}`;
      against(workload, client, 'floor', 0.85, 'the floor');
      against(workload, client, 'rlf', 1, 'one window of rate-limiter-flexible');
      if (concurrency >= 64) against(workload, client, 'rlf union', 3.5, 'its union of four');
    }
    against('hot 256', client, 'floor', 5, 'the floor');
  }
  add(
    'denied 256, decisions a second',
    cells.spread('perSecond', 'denied 256', 'headgate'),
    '≥ 1,000,000',
    (value) => value >= 1e6,
    ({ median }) => whole(median),
  );
  // At concurrency 1 a call is one decision; above it calls may carry several.
  for (const concurrency of [1, 64, 256]) {
    const cost = cells.ratio('microsPerDecision', [`spread ${concurrency}`, 'headgate'], 'rlf');
    const what = `spread ${concurrency}, server µs a decision to one window of rate-limiter-flexible`;
    add(what, cost, '≤ 1.8', (value) => value <= 1.8);
  }
  return rows;
}
