import { bar, createCells } from 'headgate-bench/cells';
import { spread, table, whole } from 'headgate-bench/table';
import { atMost, targetRow } from 'headgate-bench/targets';
import { LARGE_ANSWER_BYTES, MANY_KEYS } from './fairness-tenants.mjs';

/** The phases of a round. */
export const [ALONE, ELSEWHERE, BESIDE] = ['alone', 'attack elsewhere', 'beside the attack'];
const RATIO_MOST = 2;
const WORK_MOST_MS = 50;
const FAILED_MOST = 0;
const ADDED_MOST_MIB = 128;
const CONNECTIONS_MOST = 300;

/** What the noisy tenant does, by the name of the attack. */
const WHAT = {
  'refused bodies':
    '10 JSON bodies of 1 MB at a time, 10 per second: each ends in 422 and costs as much as possible. Each round has a new noisy tenant, because its budget lasts a minute',
  'refused queries': '400 queries of 12 KB per second that end in 422',
  'unknown API keys': `400 requests per second with keys that the config does not have; it has ${whole(MANY_KEYS)}`,
  'large answers': `20 requests per second with new idempotency keys, whose answers of ${whole(LARGE_ANSWER_BYTES)} bytes are stored in Redis`,
  'replays of a large answer': '20 replays of such an answer per second',
  'rejected requests with a key':
    'first 100,000 requests with new idempotency keys that its limit rejects, then 200 per second',
  'replays that the client does not read': 'pipelines 640 replays of such an answer, and does not read',
  'uploads that stop': '300 uploads with an idempotency key, each of which stops after 1 MB',
  'a slow upstream': 'pipelines 3,000 requests that the upstream answers after 10 seconds',
};
/** Attacks on memory, and the attack on upstream connections: they also have a target for that. */
const ON_MEMORY = ['replays that the client does not read', 'uploads that stop'];
const ON_CONNECTIONS = 'a slow upstream';

/** @param before the result of an earlier commit, for comparison */
export function fairnessReport({ rounds, seconds, linkMbit, otherWork, figures }, before) {
  const cells = createCells(figures);
  const attacks = Object.keys(figures);
  return {
    title: 'Fairness: one tenant attacks, another is measured',
    markdown: `
Two tenants of one \`headgate serve\` with default bounds. The polite
tenant sends 200 requests per second, half of them with an idempotency key, over its own 8 connections. A latency counts
from the time at which a request was due. The noisy tenant attacks, in a process of its own:

${table(
  ['attack', 'what the noisy tenant does'],
  attacks.map((name) => [name, WHAT[name]]),
)}

All processes share the cores of this machine, so an attack costs the polite tenant processor time even if the gateway
is perfect: the attacker itself needs it. So each round has three phases of ${seconds} s. The polite tenant is measured
*alone*, then while the same attack goes *elsewhere*, to a bare server that reads it and answers at once, and *beside*
the attack on its own gateway. The ratio of *beside* to *elsewhere*, within a round, is what the gateway itself adds.
In the first two phases the polite tenant uses a second gateway of equal config, which never saw the attack. If an
attack needs Redis, each gateway reaches its own over a link of ${linkMbit} Mbit/s; all other attacks run on the memory
store. Medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} (least–most). Other work used ${percent(otherWork)} of the cores before
the run; with much of it, latencies mean little.

*Gateway’s work* depends on that much less: it is the processor time that the gateway used from when a request was due
until its answer (99th percentile), so what the request had to wait behind. Only Linux can measure it, to about 4 ms.

A request of the polite tenant *failed* if its status is not 200, or if Redis did not decide it (its answer has no rate
limit). *Memory* is by how much the peak of the attacked gateway is above its peak before any attack. *Upstream
connections* is the most of that gateway.

${figuresTable(figures)}

The same attacks on commit ${before.provenance.commit}, before the gateway had bounds per application. Other work used
${percent(before.otherWork)} of the cores before that run:

${figuresTable(before.figures)}`,
    targets: attacks.flatMap((name) => targetsOf(cells, name)),
    chart: {
      title: 'The polite tenant: 99th percentile of its latency',
      unit: 'milliseconds',
      scale: 'log',
      better: 'less',
      panels: attacks.map((name) => ({
        title: name,
        bars: [
          ...bar(ALONE, 'floor', cells.spread('p99Ms', name, ALONE)),
          ...bar(ELSEWHERE, 'peer', cells.spread('p99Ms', name, ELSEWHERE)),
          ...bar(BESIDE, 'ours', cells.spread('p99Ms', name, BESIDE)),
          ...bar('before', 'peer', createCells(before.figures).spread('p99Ms', name, BESIDE)),
        ],
      })),
    },
  };
}

function figuresTable(figures) {
  const cells = createCells(flattened(figures));
  const rows = Object.keys(figures).map((name) => {
    const figure = (field, phase) => cells.figure(field, name, phase);
    const milliseconds = (phase) => (figure('p99Ms', phase) === undefined ? '' : figure('p99Ms', phase).toFixed(1));
    const ratio = cells.ratio('p99Ms', [name, BESIDE], ELSEWHERE);
    return [
      name,
      ...[ALONE, ELSEWHERE, BESIDE].map(milliseconds),
      ratio === undefined ? '' : spread(ratio),
      [ALONE, BESIDE].map((phase) => figure('workP99Ms', phase).toFixed(0)).join(' → '),
      percent(figure('failedShare', BESIDE)),
      whole(figure('addedMib', BESIDE)),
      whole(figure('upstreamConnections', BESIDE)),
      outcomes(figures[name][BESIDE]),
    ];
  });
  return table(
    [
      'attack',
      'p99 alone, ms',
      'attack elsewhere',
      'beside the attack',
      'beside / elsewhere',
      'gateway’s work, ms: alone → beside',
      'failed',
      'memory, MiB',
      'upstream connections',
      'answers to the attack',
    ],
    rows,
  );
}

function targetsOf(measured, name) {
  const cells = createCells(
    flattened({
      [name]: Object.fromEntries([ALONE, ELSEWHERE, BESIDE].map((phase) => [phase, measured.rounds(name, phase)])),
    }),
  );
  const showWhole = ({ median, least, most }) => `${whole(median)} (${whole(least)}–${whole(most)})`;
  const showPercent = ({ median, least, most }) => `${percent(median)} (${percent(least)}–${percent(most)})`;
  return [
    ...targetRow(
      `${name}: p99 beside the attack, relative to the attack elsewhere`,
      cells.ratio('p99Ms', [name, BESIDE], ELSEWHERE),
      atMost(RATIO_MOST),
    ),
    ...targetRow(
      `${name}: ms of the gateway’s work before an answer, p99`,
      cells.spread('workP99Ms', name, BESIDE),
      atMost(WORK_MOST_MS),
      showWhole,
    ),
    ...targetRow(
      `${name}: requests of the polite tenant that failed`,
      cells.spread('failedShare', name, BESIDE),
      atMost(FAILED_MOST),
      showPercent,
    ),
    ...(ON_MEMORY.includes(name)
      ? targetRow(
          `${name}: MiB of memory that the attack adds`,
          cells.spread('addedMib', name, BESIDE),
          atMost(ADDED_MOST_MIB),
          showWhole,
        )
      : []),
    ...(name === ON_CONNECTIONS
      ? targetRow(
          `${name}: connections to the upstream`,
          cells.spread('upstreamConnections', name, BESIDE),
          atMost(CONNECTIONS_MOST),
          showWhole,
        )
      : []),
  ];
}

/** With the memory that the attack adds. */
function flattened(figures) {
  const flat = (figure) => ({ ...figure, addedMib: figure.peakMib - figure.idleMib });
  return Object.fromEntries(
    Object.entries(figures).map(([name, phases]) => [
      name,
      Object.fromEntries(Object.entries(phases).map(([phase, rounds]) => [phase, rounds.map(flat)])),
    ]),
  );
}

const percent = (share) => `${Number((share * 100).toPrecision(2))} %`;

/** Statuses of the answers to the attack in all rounds, as percentages. */
function outcomes(rounds) {
  const counts = {};
  for (const { attacker } of rounds)
    for (const [status, number] of Object.entries(attacker)) counts[status] = (counts[status] ?? 0) + number;
  const total = Object.values(counts).reduce((sum, number) => sum + number, 0);
  const shares = Object.entries(counts).map(([status, number]) => `${status}: ${percent(number / total)}`);
  return shares.length === 0 ? 'none' : shares.join(', ');
}
