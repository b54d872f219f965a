import { bar, createCells } from 'headgate-bench/cells';
import { spread, table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';
import {
  FASTIFY,
  FLOOR,
  HAPROXY,
  LEASES,
  LESS,
  MEMORY,
  NGINX,
  NODE_FLOOR,
  REDIS,
  WORKERS,
} from './gateway-candidates.mjs';
import { ANSWER_BYTES, REQUESTS } from './gateway-settings.mjs';
import { STAGE_NAMES } from './gateway-stages.mjs';

/** How many times the CPU of the floor a request may need. */
const MOST_CPU = { small: { [MEMORY]: 1.6, [REDIS]: 1.9, [LEASES]: 1.7 }, keyed: { [MEMORY]: 2.5 } };
/** How many times the CPU of Fastify's proxy. */
const MOST_CPU_BESIDE_FASTIFY = 0.95;
/** Two workers do at least 1.8 times the work of one on two free cores, if a request costs them no more CPU than this. */
const MOST_CPU_OF_WORKERS = 2 / 1.8;
/** The least part of the throughput of the faster floor with large bodies. */
const LEAST_THROUGHPUT = 0.9;
const TITLES = {
  small: 'small requests',
  keyed: 'requests with an idempotency key',
  download: 'answers of 20 MiB',
  upload: 'bodies of 20 MiB',
};
const SMALL = ['small', 'keyed'];
const LARGE = ['download', 'upload'];

export function gatewayReport({ provenance: { versions }, rounds, seconds, otherWork, stages, figures }) {
  const cells = createCells(figures);
  const measured = (names) => names.filter((name) => figures[name] !== undefined);
  const { connections } = REQUESTS.small;
  return {
    title: 'The gateway as a proxy',
    markdown: `
\`headgate serve\`, as users run it, beside other proxies with a limit, and a bare proxy as a floor. Median of ${rounds}
rounds of ${seconds} s (least–most), in which all candidates take turns.

- *CPU* is the time of all processes and threads of the proxy, by the system's clock. The load and the upstream do not
  count. After the dot is the ratio to the floor of the same round.
- The floor is \`node:http\` and the \`dispatch\` of undici: 20 lines without a key, a limit, a log or a deadline. The
  next row is the same with the client of \`node:http\`, which needs more CPU. The ratios are to the cheaper one.
- Small requests: \`GET\` with the fields that a client library sends, one API key, 1,000 accounts in the query in turn,
  answers of ${ANSWER_BYTES.toLocaleString('en')} bytes of JSON with the fields that an API sends, ${connections} kept connections.
  headgate checks four windows, and has 19 routes.
- Each workload has processes of its own, because large bodies in the same process make small requests expensive for some.
- Each process gets a load of a second before each measurement. While the others take their turns it is idle for half a
  minute, and V8 then drops compiled code: without that load, the first second measures the compiler.
- Every proxy except the floors writes a line per request, to \`/dev/null\`. Those on Node write it as headgate does.
- Requests with an idempotency key: \`POST\` with 300 bytes of JSON and a new key each, stored for retries.
- Two workers share the two cores with the load, the upstream and Redis here, so their CPU says what they would do on
  cores of their own: if a request costs no more than in one process, two cores do twice the work.
- The load comes from the same machine, so requests per second and times measure the proxy, the load and the upstream
  together. CPU is what carries over. Other work used ${Math.round(otherWork * 100)} % of the cores before the run.
- Small requests are sent by ${versions.wrk === undefined ? 'a process of this benchmark, since wrk was not installed' : `wrk ${versions.wrk}`}.
${absent(versions)}
${measured(SMALL)
  .map((workload) => smallTable(cells, figures, workload))
  .join('\n\n')}
${largeText(cells, figures, measured(LARGE))}
${stageText(cells, stages)}`,
    targets: targets(cells),
    chart: {
      title: 'CPU of a proxy per request',
      unit: 'microseconds of CPU',
      scale: 'log',
      better: 'less',
      panels: measured(SMALL).map((workload) => ({
        title: TITLES[workload],
        bars: Object.keys(figures[workload]).flatMap((name) =>
          bar(name, kindOf(name), cells.spread('cpuMicros', workload, name)),
        ),
      })),
    },
  };
}

function kindOf(name) {
  if (name === FLOOR || name === NODE_FLOOR) return 'floor';
  return [MEMORY, REDIS, LEASES, WORKERS].includes(name) ? 'ours' : 'peer';
}

const titleOf = (name) => (kindOf(name) === 'ours' ? `**${name}**` : name);

function absent(versions) {
  const missing = [NGINX, HAPROXY].filter((name) => versions[name] === undefined);
  return missing.length === 0 ? '' : `- Not installed, so not measured: ${missing.join(', ')}.\n`;
}

function smallTable(cells, figures, workload) {
  const milliseconds = (field, name) => (cells.figure(field, workload, name) / 1_000).toFixed(1);
  return table(
    [TITLES[workload], 'CPU, µs per request', 'requests per second', 'p50, ms', 'p99, ms', 'does less'],
    Object.keys(figures[workload]).map((name) => [
      titleOf(name),
      withRatio(cells, 'cpuMicros', workload, name),
      whole(cells.figure('perSecond', workload, name)),
      milliseconds('p50Micros', name),
      milliseconds('p99Micros', name),
      LESS[name] ?? '',
    ]),
  );
}

function largeText(cells, figures, workloads) {
  if (workloads.length === 0) return '';
  return `
Large bodies, over ${REQUESTS.download.connections} connections. They are streamed, and not stored:

${largeTable(cells, figures, workloads)}`;
}

function largeTable(cells, figures, workloads) {
  return table(
    ['MiB per second', ...workloads.flatMap((workload) => [TITLES[workload], 'CPU, ms each'])],
    [...new Set(workloads.flatMap((workload) => Object.keys(figures[workload])))].map((name) => [
      titleOf(name),
      ...workloads.flatMap((workload) => [
        withRatio(cells, 'mibPerSecond', workload, name, whole),
        withRatio(cells, 'cpuMicros', workload, name, (micros) => (micros / 1_000).toFixed(1)),
      ]),
    ]),
  );
}

function withRatio(cells, field, workload, name, show = (value) => value.toFixed(1)) {
  const value = cells.figure(field, workload, name);
  if (value === undefined) return '';
  const ratio = name === FLOOR ? undefined : cells.ratio(field, [workload, name], FLOOR);
  return ratio ? `${show(value)} · ${spread(ratio)}` : show(value);
}

function stageText(cells, stages) {
  const workloads = Object.keys(stages);
  if (workloads.length === 0) return '';
  const cell = (workload, name) => {
    const share = stages[workload][name];
    const micros = cells.figure('cpuMicros', workload, MEMORY);
    return [`${(share * 100).toFixed(1)} %`, micros === undefined ? '' : (share * micros).toFixed(1)];
  };
  return `
Where headgate with the memory store uses this CPU, by a profile of V8. A sample counts for the innermost function of
headgate that has called what was running, so a stage has what it asks of Node. The microseconds are the share in the
CPU above, which was measured without the profiler.

${table(
  ['stage', ...workloads.flatMap((workload) => [TITLES[workload], 'µs'])],
  STAGE_NAMES.map((name) => [name, ...workloads.flatMap((workload) => cell(workload, name))]),
)}`;
}

function targets(cells) {
  const relative = Object.entries(MOST_CPU).flatMap(([workload, most]) =>
    Object.entries(most).flatMap(([name, bound]) =>
      targetRow(
        `${TITLES[workload]}: CPU of ${name} relative to the floor`,
        cells.ratio('cpuMicros', [workload, name], FLOOR),
        atMost(bound),
      ),
    ),
  );
  const beside = [MEMORY, REDIS].flatMap((name) =>
    targetRow(
      `${TITLES.small}: CPU of ${name} relative to fastify`,
      cells.ratio('cpuMicros', ['small', name], FASTIFY),
      atMost(MOST_CPU_BESIDE_FASTIFY),
    ),
  );
  const workers = targetRow(
    `${TITLES.small}: CPU of two workers relative to one process, with Redis`,
    cells.ratio('cpuMicros', ['small', WORKERS], REDIS),
    atMost(MOST_CPU_OF_WORKERS, MOST_CPU_OF_WORKERS.toFixed(2)),
  );
  const latency = targetRow(
    `${TITLES.small}: p99 of ${MEMORY} relative to fastify`,
    cells.ratio('p99Micros', ['small', MEMORY], FASTIFY),
    atMost(1),
  );
  const throughput = LARGE.flatMap((workload) =>
    targetRow(
      `${TITLES[workload]}: throughput relative to the faster floor`,
      [FLOOR, NODE_FLOOR]
        .flatMap((floor) => cells.ratio('mibPerSecond', [workload, MEMORY], floor) ?? [])
        .sort((a, b) => a.median - b.median)[0],
      atLeast(LEAST_THROUGHPUT),
    ),
  );
  return [...relative, ...beside, ...workers, ...latency, ...throughput];
}
