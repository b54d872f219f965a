import { bar, createCells, ratesTable } from 'headgate-bench/cells';
import { table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';

const REDIS_CLIENTS = ['ioredis', 'node-redis', 'node-redis 4'];
const PEERS = ['node-idempotency', 'powertools', 'express-idempotency'];
const ROWS = {
  floor: 'floor',
  headgate: '**headgate**',
  'headgate, parsed': 'headgate, body passed as an object',
  'headgate, explicit': 'headgate, explicit dispatch',
  against: 'headgate from `--against`',
  'node-idempotency': '@node-idempotency/core',
  powertools: '@aws-lambda-powertools/idempotency',
  'express-idempotency': 'express-idempotency',
};
const KINDS = {
  floor: 'floor',
  headgate: 'ours',
  'headgate, parsed': 'ours',
  'headgate, explicit': 'ours',
  against: 'ours',
};
/** What a row does less than headgate. */
const LESS = {
  floor: 'only look-up and hash, or only the commands',
  'node-idempotency':
    'no owner, no lease: a crash blocks the key for the whole retention, a late attempt overwrites; a replay takes a claim and a look-up',
  powertools:
    'no fingerprint check (its cache layer loses the hash), no owner; a failure frees the key, even after the effect; a replay takes a claim and a look-up',
  'express-idempotency':
    'claim is not atomic, no owner, no expiry; searches all keys one by one; compares bodies instead of hashing',
};
const [FLOOR_LEAST, PEER_LEAST, PRINT_LEAST, PRINT_MIB] = [0.7, 2, 0.7, 4];

export function idempotencyReport({ rounds, seconds, keyCount, figures, prints }) {
  const cells = createCells(figures, 'memory');
  const sections = [memorySection(cells, figures), redisSection(cells, figures), printSection(prints)];
  return {
    title: 'Idempotency',
    markdown: `
One process per candidate. All candidates take turns, in ${rounds} rounds of ${seconds} s per table cell. Stores have
${whole(keyCount)} keys. The body is JSON of about 300 bytes (small) or 10 KB (large). The operation resolves at once
with a small object. Figures are medians. After the dot is the ratio to the floor within a round: median (least–most).

${sections.filter((section) => section !== undefined).join('\n\n')}`,
    targets: [...memoryTargets(cells), ...redisTargets(cells), ...printTargets(prints)],
    chart: {
      title: 'One operation, executed once per key',
      unit: 'calls per second',
      scale: 'log',
      better: 'more',
      panels: Object.keys(figures).map((workload) => ({ title: workload, bars: bars(cells, workload) })),
    },
  };
}

function bars(cells, workload) {
  const clients = workload.startsWith('memory') ? ['memory'] : REDIS_CLIENTS;
  return clients.flatMap((client) =>
    Object.entries(ROWS).flatMap(([row, title]) => {
      const short = title.replaceAll(/\*|@aws-lambda-/g, '');
      const label = client === 'memory' ? short : `${short}, ${client}`;
      return bar(label, KINDS[row] ?? 'peer', cells.spread('perSecond', workload, row, client));
    }),
  );
}

function memorySection(cells, figures) {
  const workloads = Object.keys(figures).filter((name) => name.startsWith('memory'));
  if (workloads.length === 0) return undefined;
  return `In memory. The floor is one look-up in a \`Map\`, one SHA-256 of the body, and the operation.

${callTable(cells, workloads, ['memory'])}`;
}

function redisSection(cells, figures) {
  const workloads = Object.keys(figures).filter((name) => name.startsWith('redis'));
  if (workloads.length === 0) return undefined;
  return `On Redis: one server without persistence, one connection, small bodies, one or 64 calls in flight. The floor is
\`SET NX\` and \`SET\` for a first call, and one \`GET\` for a replay. Commands and server time are the server’s own
counts (\`INFO commandstats\`); CPU is that of the client’s process. The storage of @node-idempotency brings its own
node-redis 4. It runs with that client, which has a floor of its own, and with the node-redis of the others.

${callTable(cells, workloads, REDIS_CLIENTS)}

${costTable(cells, workloads)}`;
}

function callTable(cells, workloads, clients) {
  const titleOf = (title, client) => (client === 'memory' ? title : `${title}, ${client}`);
  const candidates = clients.flatMap((client) =>
    Object.entries(ROWS).map(([candidate, title]) => [candidate, client, titleOf(title, client), LESS[candidate]]),
  );
  return ratesTable('calls', cells, workloads, candidates);
}

function costTable(cells, workloads) {
  const rows = [];
  for (const workload of workloads) {
    for (const client of REDIS_CLIENTS) {
      for (const [candidate, title] of Object.entries(ROWS)) {
        if (cells.rounds(workload, candidate, client) === undefined) continue;
        const fields = ['commands', 'serverMicros', 'cpuMicros'];
        const figures = fields.map((field) => cells.figure(field, workload, candidate, client).toFixed(2));
        rows.push([`${workload}, ${title}, ${client}`, ...figures]);
      }
    }
  }
  return table(['', 'commands per call', 'server, µs per call', 'client CPU, µs per call'], rows);
}

function printSection(prints) {
  if (prints === undefined) return undefined;
  const rows = prints.results.map(({ content, hashMs, printMs, ratio }) => [
    content,
    hashMs.toFixed(1),
    printMs.toFixed(1),
    ratio.toFixed(2),
  ]);
  return table(['fingerprint of 20 MiB of multipart', 'SHA-256, ms', 'fingerprint, ms', 'SHA-256 ÷ fingerprint'], rows);
}

const twoDigits = (value) => value.toFixed(2);

function memoryTargets(cells) {
  return ['first', 'replay'].flatMap((kind) =>
    ['small', 'large'].flatMap((body) => {
      const workload = `memory ${kind} ${body}`;
      const row = (what, base, least, ours = 'headgate') =>
        targetRow(`${workload}: ${what}`, cells.ratio('perSecond', [workload, ours], base), atLeast(least));
      const peer = 'relative to @node-idempotency/core';
      return [
        ...row(peer, 'node-idempotency', PEER_LEAST),
        ...row(`body passed as an object, ${peer}`, 'node-idempotency', PEER_LEAST, 'headgate, parsed'),
        ...row('relative to the floor', 'floor', FLOOR_LEAST),
      ];
    }),
  );
}

function redisTargets(cells) {
  const trips = (workload, candidate, count) =>
    targetRow(
      `${workload}: round trips per call${candidate === 'headgate' ? '' : ', explicit dispatch'}`,
      cells.figure('commands', workload, candidate, 'ioredis'),
      { wanted: String(count), isMet: (value) => Math.round(value * 100) / 100 === count },
      twoDigits,
    );
  return [
    ...againstBest(cells, 'redis first 64', 1),
    ...againstBest(cells, 'redis replay 64', 1.5),
    ...trips('redis first 1', 'headgate', 2),
    ...trips('redis first 1', 'headgate, explicit', 3),
    ...trips('redis replay 1', 'headgate', 1),
  ];
}

/**
 * headgate on each of its clients, relative to the fastest peer on node-redis and on the client that the peer brings.
 */
function againstBest(cells, workload, least) {
  const speed = (peer) => cells.figure('perSecond', workload, peer, 'node-redis') ?? 0;
  const best = PEERS.toSorted((left, right) => speed(right) - speed(left))[0];
  if (speed(best) === 0) return [];
  const row = (ours, theirs) =>
    targetRow(
      `${workload}: on ${ours}, relative to ${ROWS[best]} on ${theirs}`,
      cells.ratio('perSecond', [workload, 'headgate', ours], best, theirs),
      atLeast(least, least.toFixed(1)),
    );
  return ['node-redis', 'ioredis'].flatMap((ours) =>
    ['node-redis', 'node-redis 4'].flatMap((theirs) => row(ours, theirs)),
  );
}

function printTargets(prints) {
  if (prints === undefined) return [];
  const slowest = Math.min(...prints.results.map(({ ratio }) => ratio));
  return [
    ...targetRow(
      'fingerprint of 20 MiB: speed relative to SHA-256, slowest content',
      slowest,
      atLeast(PRINT_LEAST),
      twoDigits,
    ),
    ...targetRow('fingerprint of 20 MiB: extra memory, MiB', prints.memoryMib, atMost(PRINT_MIB), twoDigits),
  ];
}
