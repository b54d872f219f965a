import { bar, createCells } from './cells.mjs';
import { spread, table, whole } from './table.mjs';

const ONE = '1';
const TITLES = { limiter: 'limiter alone', gateway: '`headgate serve`, over HTTP' };

export function scaleOutReport({ provenance, rounds, seconds, inFlight, hotMost, figures }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures);
  return {
    title: 'Scale-out: several processes on one allowance',
    markdown: `
1, 2 and 4 processes that share their counters: the limiter alone (four windows, ioredis, ${inFlight.limiter} checks under way in each process, spread over 10,000 accounts), and the product as it is run,
\`headgate serve\` in front of a bare upstream, each loaded by a process of its own over ${inFlight.gateway} kept connections. On one Redis server, and on a cluster of 3 masters. Medians of ${rounds} interleaved
rounds of ${seconds} s, with the least and the most.

**This machine has ${provenance.cores} cores**, and servers, gateways, upstream and load share them: where they are all busy, another process adds nothing, and a third server only takes turns with the others. So decisions a
second say what this machine does; what can be carried elsewhere is the CPU of a decision: of the servers (\`INFO cpu\`), and of the deciding processes. The time in scripts (\`INFO commandstats\`) is by the server’s
clock, and grows where a server waits for a core. On a cluster a call is of one account, so that nothing of different accounts travels together.

${table(
  [
    'processes',
    'decisions a second',
    'to one process',
    'decisions a call',
    'server CPU, µs a decision',
    'in scripts',
    'process CPU, µs a decision',
    'cores busy with these',
  ],
  workloads.flatMap((workload) => Object.keys(figures[workload]).map((count) => row(cells, workload, count))),
)}

In every cell all its processes also rush at one hot account at the same time, each with more requests than its window allows: together they let through ${whole(hotMost)}, its max, each time; one more or one less
fails the run.`,
    chart: {
      title: 'Decisions a second by number of processes',
      unit: `decisions a second, everything on ${provenance.cores} cores`,
      scale: 'log',
      better: 'more',
      panels: workloads.map((workload) => ({
        title: titleOf(workload).replaceAll('`', ''),
        bars: Object.keys(figures[workload]).flatMap((count) =>
          bar(processes(count), 'ours', cells.spread('perSecond', workload, count)),
        ),
      })),
    },
  };
}

function row(cells, workload, count) {
  const { median, least, most } = cells.spread('perSecond', workload, count);
  const figure = (field) => cells.figure(field, workload, count);
  const busy = (median * (figure('serverMicros') + figure('cpuMicros'))) / 1e6;
  const ratio = count === ONE ? undefined : cells.ratio('perSecond', [workload, count], ONE);
  return [
    `${titleOf(workload)}: ${processes(count)}`,
    `${whole(median)} (${whole(least)}–${whole(most)})`,
    ratio ? spread(ratio) : '',
    figure('decisionsPerCall').toFixed(1),
    figure('serverMicros').toFixed(2),
    figure('scriptMicros').toFixed(2),
    figure('cpuMicros').toFixed(1),
    busy.toFixed(2),
  ];
}

function titleOf(workload) {
  const [kind, store] = workload.split(', ');
  return `${TITLES[kind]}, ${store}`;
}

const processes = (count) => `${count} ${count === ONE ? 'process' : 'processes'}`;
