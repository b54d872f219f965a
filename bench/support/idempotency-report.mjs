import { bar, createCells, ratesTable } from './cells.mjs';
import { verdict } from './statistics.mjs';
import { spread, table, whole } from './table.mjs';

const REDIS_CLIENTS = ['ioredis', 'node-redis', 'node-redis 4'];
const PEERS = ['node-idempotency', 'powertools', 'express-idempotency'];
const ROWS = {
  floor: 'floor',
  headgate: '**headgate**',
  'headgate, parsed': 'headgate, body given parsed',
  'headgate, explicit': 'headgate, explicit dispatch',
  against: 'headgate of `--against`',
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
/** Where a row does less than headgate. */
const LESS = {
  floor: 'everything but look-up, hash or commands',
  'node-idempotency':
    'no owner, no lease: a dead owner blocks its key for the retention, a late one overwrites; replay: claim and look-up apart',
  powertools:
    'no fingerprint check (its cache layer loses the hash), no owner; a failure frees the key, effect or not; replay: claim and look-up apart',
  'express-idempotency':
    'claim not atomic, no owner, no expiry, looks through all keys in turn; compares bodies instead of hashing',
};
const [FLOOR_LEAST, PEER_LEAST, PRINT_LEAST, PRINT_MIB] = [0.7, 2, 0.7, 4];

export function idempotencyReport({ rounds, seconds, keyCount, figures, prints }) {
  const cells = createCells(figures, 'memory');
  const sections = [memorySection(cells, figures), redisSection(cells, figures), printSection(prints)];
  return {
    title: 'Idempotency',
    markdown: `
One process for each candidate; ${rounds} rounds of ${seconds} s a cell, all candidates in turns, stores of ${whole(keyCount)} keys. A JSON body of about 300 bytes (small) or 10 KB (large); the
operation resolves at once, with a small object. Medians; a ratio is to the floor within a round, with the least and the most of the rounds behind it.

${sections.filter((section) => section !== undefined).join('\n\n')}`,
    targets: [...memoryTargets(cells), ...redisTargets(cells), ...printTargets(prints)],
    chart: {
      title: 'One operation, once by key',
      unit: 'calls a second',
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
  return `In memory; the floor is one look-up in a \`Map\`, one SHA-256 of the body, and the operation.

${callTable(cells, workloads, ['memory'])}`;
}

function redisSection(cells, figures) {
  const workloads = Object.keys(figures).filter((name) => name.startsWith('redis'));
  if (workloads.length === 0) return undefined;
  return `On Redis, one server without persistence, one connection, small bodies, one or 64 calls at a time; the floor is \`SET NX\` and \`SET\` for a first call, one \`GET\` for a replay. Round trips and
the server's time are its own count (\`INFO commandstats\`), CPU is the client's process. @node-idempotency's storage brings node-redis 4 with it: it is run with that, beside that client's own floor, and with the node-redis of the others.

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
        const of = (field) => cells.figure(field, workload, candidate, client).toFixed(2);
        rows.push([`${workload}, ${title}, ${client}`, of('commands'), of('serverMicros'), of('cpuMicros')]);
      }
    }
  }
  return table(['', 'commands a call', 'server, µs a call', 'client CPU, µs a call'], rows);
}

function printSection(prints) {
  if (prints === undefined) return undefined;
  const rows = prints.results.map(({ content, hashMs, printMs, ratio }) => [
    content,
    hashMs.toFixed(1),
    printMs.toFixed(1),
    ratio.toFixed(2),
  ]);
  return table(['fingerprint of 20 MiB of multipart', 'SHA-256, ms', 'fingerprint, ms', 'ratio'], rows);
}

function row(what, value, wanted, isMet, show = spread) {
  if (value === undefined) return [];
  const outcome = typeof value === 'number' ? { met: isMet(value) } : verdict(value, isMet);
  return [{ what, measured: show(value), wanted, ...outcome }];
}

function memoryTargets(cells) {
  return ['first', 'replay'].flatMap((kind) =>
    ['small', 'large'].flatMap((body) => {
      const workload = `memory ${kind} ${body}`;
      const to = (base, ours = 'headgate') => cells.ratio('perSecond', [workload, ours], base);
      const isTwice = (value) => value >= PEER_LEAST;
      return [
        ...row(`${workload}, to @node-idempotency/core`, to('node-idempotency'), `≥ ${PEER_LEAST}`, isTwice),
        ...row(
          `${workload}, given a parsed body as that is`,
          to('node-idempotency', 'headgate, parsed'),
          `≥ ${PEER_LEAST}`,
          isTwice,
        ),
        ...row(`${workload}, to the floor`, to('floor'), `≥ ${FLOOR_LEAST}`, (value) => value >= FLOOR_LEAST),
      ];
    }),
  );
}

function redisTargets(cells) {
  const count = (value) => value.toFixed(2);
  const trips = (workload, candidate, wanted) =>
    row(
      `round trips a call, ${workload}${candidate === 'headgate' ? '' : ', explicit dispatch'}`,
      cells.figure('commands', workload, candidate, 'ioredis'),
      `${wanted}`,
      (value) => Math.round(value * 100) / 100 === wanted,
      count,
    );
  return [
    ...againstBest(cells, 'redis first 64', 1),
    ...againstBest(cells, 'redis replay 64', 1.5),
    ...trips('redis first 1', 'headgate', 2),
    ...trips('redis first 1', 'headgate, explicit', 3),
    ...trips('redis replay 1', 'headgate', 1),
  ];
}

/** To the fastest peer: on the client that headgate has in that row, where the peer takes that one, and as the peer comes. */
function againstBest(cells, workload, least) {
  const speed = (peer) => cells.figure('perSecond', workload, peer, 'node-redis') ?? 0;
  const best = PEERS.toSorted((left, right) => speed(right) - speed(left))[0];
  if (speed(best) === 0) return [];
  const to = (ours, theirs) =>
    row(
      `${workload}, on ${ours}, to ${ROWS[best]} on ${theirs}`,
      cells.ratio('perSecond', [workload, 'headgate', ours], best, theirs),
      `≥ ${least.toFixed(1)}`,
      (value) => value >= least,
    );
  return ['node-redis', 'ioredis'].flatMap((ours) =>
    ['node-redis', 'node-redis 4'].flatMap((theirs) => to(ours, theirs)),
  );
}

function printTargets(prints) {
  if (prints === undefined) return [];
  const slowest = Math.min(...prints.results.map(({ ratio }) => ratio));
  return [
    ...row(
      'fingerprint of 20 MiB, to SHA-256, slowest content',
      slowest,
      `≥ ${PRINT_LEAST}`,
      (value) => value >= PRINT_LEAST,
      (value) => value.toFixed(2),
    ),
    ...row(
      'its extra memory, MiB',
      prints.memoryMib,
      `≤ ${PRINT_MIB}`,
      (value) => value <= PRINT_MIB,
      (value) => value.toFixed(2),
    ),
  ];
}
