import { bar, createCells } from 'headgate-bench/cells';
import { spread, table, whole } from 'headgate-bench/table';
import { DOOR_PROGRAMS, PROXY, WITHOUT } from './doors-candidates.mjs';
import { REQUESTS } from './gateway-settings.mjs';

const WORKLOAD = 'decisions';

export function doorsReport({ provenance: { versions }, rounds, seconds, otherWork, figures }) {
  const cells = createCells(figures);
  const names = Object.keys(figures[WORKLOAD] ?? {});
  const absent = DOOR_PROGRAMS.filter((name) => versions[name] === undefined);
  const { connections } = REQUESTS.small;
  return {
    title: 'Doors: decisions for other proxies and programs',
    markdown: `
What a decision costs if headgate only decides, with the memory store and four windows. Median of ${rounds} rounds of
${seconds} s (least–most), in which all doors take turns.

- *CPU* is the time of all processes and threads, by the system's clock: of headgate, and of the proxy that asks it. The
  load and the upstream do not count.
- The requests through proxies are those of the topic gateway, over ${connections} kept connections, with 1,000 accounts in turn.
  Each answer carries a receipt, as on the pages of nginx and Caddy, whose configs are used.
- The decision API gets a \`POST\` with route and account. Envoy's rate limit service gets calls with one descriptor over
  4 connections of gRPC, by a client in Node that was made from Envoy's published API: its latency is that client's too.
- Other work used ${Math.round(otherWork * 100)} % of the cores before the run.
${absent.length === 0 ? '' : `- Not installed, so not measured: ${absent.join(', ')}.\n`}
${table(
  [
    'door',
    'CPU of headgate, µs',
    'CPU of the proxy, µs',
    'both, to the proxy without',
    'per second',
    'p50, ms',
    'p99, ms',
  ],
  names.map((name) => row(cells, figures, name)),
)}`,
    targets: [],
    chart: {
      title: 'CPU of headgate per decision',
      unit: 'microseconds of CPU',
      scale: 'linear',
      better: 'less',
      panels: [
        {
          title: 'doors',
          bars: names
            .filter((name) => cells.figure('headgateMicros', WORKLOAD, name) > 0)
            .flatMap((name) =>
              bar(name, name === PROXY ? 'floor' : 'ours', cells.spread('headgateMicros', WORKLOAD, name)),
            ),
        },
      ],
    },
  };
}

function row(cells, figures, name) {
  const shown = (field) => {
    const { median, least, most } = cells.spread(field, WORKLOAD, name);
    return most === 0 ? '' : `${median.toFixed(1)} (${least.toFixed(1)}–${most.toFixed(1)})`;
  };
  const milliseconds = (field) => (cells.figure(field, WORKLOAD, name) / 1_000).toFixed(1);
  return [
    name,
    shown('headgateMicros'),
    shown('proxyMicros'),
    ratioToBare(figures[WORKLOAD], name),
    whole(cells.figure('perSecond', WORKLOAD, name)),
    milliseconds('p50Micros'),
    milliseconds('p99Micros'),
  ];
}

/** How many times the CPU of the proxy without a limit the proxy and headgate need together. */
function ratioToBare(figures, name) {
  const bare = figures[WITHOUT[name]];
  if (bare === undefined) return '';
  const cpuOf = ({ headgateMicros, proxyMicros }) => headgateMicros + proxyMicros;
  const cells = createCells({
    [WORKLOAD]: {
      door: figures[name].map((figure) => ({ cpu: cpuOf(figure) })),
      bare: bare.map((figure) => ({ cpu: cpuOf(figure) })),
    },
  });
  return spread(cells.ratio('cpu', [WORKLOAD, 'door'], 'bare'));
}
