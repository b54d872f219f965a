import { createCells, spread, whole } from './cells.mjs';
import { origin, table } from './report.mjs';

const CLIENTS = ['ioredis', 'auto-pipelined', 'node-redis'];
const ROWS = {
  floor: 'bare EVALSHA of `return 1`',
  headgate: '**headgate, four windows**',
  against: 'headgate of `--against`',
  rlf: 'rate-limiter-flexible, one window',
  'rlf union': 'rate-limiter-flexible, union of four',
};

/** @returns the section of docs/benchmarks.md, readable in a terminal as well */
export function redisReport({ provenance, rounds, seconds, keyCount, figures }) {
  const cells = createCells(figures, 'ioredis');
  const { versions } = provenance;
  const used = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `## Redis, four windows

One server, one connection and one process for each candidate; ${rounds} rounds of ${seconds} s a cell, all candidates in turns. ${whole(keyCount)} keys in a fixed random
order. Medians; a ratio is to the bare EVALSHA on the same client within a round, with the least and the most of the rounds behind it.

${decisionTable(cells, Object.keys(figures))}

What a decision costs, at the highest concurrency that was run: \`INFO commandstats\` of the server, CPU of the client's process.

${costTable(cells)}

${targetTable(cells)}

${used.join(', ')}. ${origin(provenance, 'bench:redis')}
`;
}

function decisionTable(cells, workloads) {
  const rows = CLIENTS.flatMap((client) =>
    Object.entries(ROWS).map(([candidate, title]) => [
      `${title}, ${client}`,
      ...workloads.map((workload) => {
        const perSecond = cells.figure('perSecond', workload, candidate, client);
        if (perSecond === undefined) return '';
        const ratio =
          candidate === 'floor' ? undefined : cells.ratio('perSecond', [workload, candidate, client], 'floor');
        return ratio ? `${whole(perSecond)} · ${spread(ratio)}` : whole(perSecond);
      }),
    ]),
  );
  return table(
    ['decisions a second', ...workloads],
    rows.filter(([, ...values]) => values.some((value) => value !== '')),
  );
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

function targetTable(cells) {
  const rows = [];
  const add = (what, value, wanted, isMet, show = spread) => {
    if (value !== undefined) rows.push([what, show(value), wanted, isMet(value.median ?? value) ? '✓' : '✗']);
  };
  const against = (workload, base, least, title) =>
    add(
      `${workload}, to ${title}`,
      cells.ratio('perSecond', [workload, 'headgate'], base),
      `≥ ${least}`,
      (value) => value >= least,
    );
  for (const concurrency of [1, 16, 64, 256]) {
    const workload = `spread ${concurrency}`;
    against(workload, 'floor', 0.85, 'the floor');
    against(workload, 'rlf', 1, 'one window of rate-limiter-flexible');
    if (concurrency >= 64) against(workload, 'rlf union', 3.5, 'its union of four');
  }
  against('hot 256', 'floor', 5, 'the floor');
  add(
    'denied, decisions a second',
    cells.figure('perSecond', 'denied 256', 'headgate'),
    '≥ 1,000,000',
    (value) => value >= 1e6,
    whole,
  );
  // At concurrency 1 a call is one decision; above it calls may carry several.
  for (const concurrency of [1, 64, 256]) {
    const cost = cells.ratio('microsPerDecision', [`spread ${concurrency}`, 'headgate'], 'rlf');
    const what = `spread ${concurrency}, server µs a decision to one window of rate-limiter-flexible`;
    add(what, cost, '≤ 1.8', (value) => value <= 1.8);
  }
  return table(['headgate on ioredis', 'measured', 'target', ''], rows);
}
