// Bodies that are as expensive as possible to read: CPU per MB, and how long the event loop is blocked. Each in a fresh
// process.

import { bar, createCells } from 'headgate-bench/cells';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { inRounds } from 'headgate-bench/rounds';
import { spread, table } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { HOSTILE_BODIES, HOSTILE_QUERIES } from '../support/hostile-bodies.mjs';

const [BODIES, QUERIES] = ['bodies of 1 MB', 'queries of 12 KB'];
const CPU_MOST_MS = 100;
const STALL_MOST_MS = 50;
const QUERY_MOST_MS = 1;
/** A body is read once before it is measured, so that its code is compiled; a query, which is short, more often. */
const WARM_UPS = { [BODIES]: 1, [QUERIES]: 50 };

export async function measure({ quick, only = '', progress, rounds = quick ? 1 : 5 }) {
  const words = only === '' ? [] : only.split(',');
  const chosen = (titles) => titles.filter((title) => words.every((word) => title.includes(word)));
  const workloads = [
    { name: BODIES, contestants: chosen(Object.keys(HOSTILE_BODIES)).map((name) => ({ name })) },
    { name: QUERIES, contestants: chosen(Object.keys(HOSTILE_QUERIES)).map((name) => ({ name })) },
  ];
  const run = ({ name }, workload, isWarmUp) => {
    // Every run is a fresh process, so there is nothing to warm up.
    if (isWarmUp) return undefined;
    progress(name);
    return inFreshProcess(new URL('../support/bodies-worker.mjs', import.meta.url), [name, WARM_UPS[workload.name]]);
  };
  return { versions: {}, rounds, figures: await inRounds({ rounds, workloads, progress, measure: run }) };
}

export function report({ rounds, figures }) {
  const cells = createCells(perMegabyte(figures));
  const titles = (workload) => Object.keys(figures[workload] ?? {});
  const worst = (field, workload) =>
    titles(workload)
      .map((title) => cells.spread(field, workload, title))
      .sort((left, right) => right.median - left.median)[0];
  const rows = (workload) =>
    titles(workload).map((title) => [
      title,
      ...['cpuMs', 'stallMs'].map((field) => spread(cells.spread(field, workload, title))),
    ]);
  return {
    title: 'Bodies that are expensive to read',
    markdown: `
What a client can make headgate compute with one body, which is then perhaps rejected and charged to no limit. The field
\`account_id\` is read and the fingerprint is made, from a body that is in memory in one piece. Median of ${rounds}
${rounds === 1 ? 'run' : 'runs'} (least–most), each in a fresh process.

${table(['body', 'CPU ms per MB', 'event loop blocked, ms'], rows(BODIES))}

From a query string only the field is read.

${table(['query', 'CPU ms', 'event loop blocked, ms'], rows(QUERIES))}`,
    targets: [
      ...targetRow('CPU ms per MB of the worst body', worst('cpuMs', BODIES), atMost(CPU_MOST_MS)),
      ...targetRow('ms that the worst body blocks the event loop', worst('stallMs', BODIES), atMost(STALL_MOST_MS)),
      ...targetRow('CPU ms of the worst query of 12 KB', worst('cpuMs', QUERIES), atMost(QUERY_MOST_MS)),
    ],
    chart: {
      title: 'CPU for one megabyte of a hostile body',
      unit: 'milliseconds',
      better: 'less',
      panels: [
        {
          title: '',
          bars: titles(BODIES).flatMap((title) => bar(title, 'ours', cells.spread('cpuMs', BODIES, title))),
        },
      ],
    },
  };
}

/** The CPU of a body is per MB, because not every body has exactly one. */
function perMegabyte(figures) {
  const divided = (run) => ({ ...run, cpuMs: run.cpuMs / run.megabytes });
  const bodies = Object.entries(figures[BODIES] ?? {}).map(([title, runs]) => [title, runs.map(divided)]);
  return { ...figures, [BODIES]: Object.fromEntries(bodies) };
}
