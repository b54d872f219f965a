import { bar, createCells } from 'headgate-bench/cells';
import { spread, table, whole } from 'headgate-bench/table';

const ONE = '1';
const TITLES = { limiter: 'limiter alone', gateway: '`headgate serve`, over HTTP' };

export function scaleOutReport({ provenance, rounds, seconds, inFlight, hotMost, figures }) {
  const cells = createCells(figures);
  const workloads = Object.keys(figures);
  return {
    title: 'Scale-out: several processes on one allowance',
    markdown: `
1, 2 and 4 processes that share their counters, on one Redis server and on a cluster of 3 masters. Medians of ${rounds}
interleaved rounds of ${seconds} s (least–most).

- *Limiter alone*: four windows, ioredis, ${inFlight.limiter} checks in flight per process, spread over 10,000 accounts.
- *\`headgate serve\`*: the product as users run it, in front of a bare upstream. A process of its own loads each
  gateway over ${inFlight.gateway} keep-alive connections.

**This machine has ${provenance.cores} cores**, shared by servers, gateways, upstream and load. When all cores are busy,
another process adds nothing, and a third server only takes turns with the others. So decisions per second describe this
machine. What carries over to other machines is the CPU per decision: of the servers (\`INFO cpu\`), and of the deciding
processes. The time in scripts (\`INFO commandstats\`) is by the server’s clock, and grows when a server waits for a
core. On a cluster each call has one account, so decisions of different accounts do not share a call.

${table(
  [
    'processes',
    'decisions per second',
    'relative to one process',
    'decisions per call',
    'server CPU, µs per decision',
    'in scripts, µs',
    'process CPU, µs per decision',
    'cores used by servers and processes',
  ],
  workloads.flatMap((workload) => Object.keys(figures[workload]).map((count) => row(cells, workload, count))),
)}

In every measurement, all processes also send requests for one hot account at the same time, each more than the
account’s window allows. Together they let through ${whole(hotMost)}, the account’s max, every time. One more or one
less fails the run.`,
    chart: {
      title: 'Decisions per second by number of processes',
      unit: `decisions per second, everything on ${provenance.cores} cores`,
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
