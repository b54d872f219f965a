// Leases beside the memory store and beside one call of Redis per decision: a busy account in real time, and many
// accounts in virtual time.
import { bar, createCells } from 'headgate-bench/cells';
import { createFleet } from 'headgate-bench/fleet';
import { versionOf } from 'headgate-bench/provenance';
import { meterScripts, startRedisServer } from 'headgate-bench/redis-server';
import { inRounds } from 'headgate-bench/rounds';
import { table, whole } from 'headgate-bench/table';
import { atLeast, atMost, targetRow } from 'headgate-bench/targets';
import { simulateFleet } from '../support/fleet.mjs';

const PROCESSES = [1, 2, 4];
const FAR_MS = 80;
const EVERY_MS = 4;
const SEED = 202_611;
const BUSY = ['6000/1m', '100000/1h'];
const TIGHT = ['100/1m', '1000/1h'];
/** Traffic of four processes, and the largest share of today's trips that leases may make. */
const TRAFFIC = {
  'Zipf 1.1, 1,000 accounts, 20,000 per second': {
    ...{ accounts: 1_000, exponent: 1.1, perSecond: 20_000, seconds: 60, limits: BUSY },
    most: 0.25,
  },
  'Zipf 1.1, 10,000 accounts, 2,000 per second': {
    ...{ accounts: 10_000, exponent: 1.1, perSecond: 2_000, seconds: 120, limits: BUSY },
    most: 0.6,
  },
  'the same, with limits that are often full': {
    ...{ accounts: 10_000, exponent: 1.1, perSecond: 2_000, seconds: 120, limits: TIGHT },
    most: 0.95,
  },
  'uniform, 10,000 accounts, 2,000 per second': {
    ...{ accounts: 10_000, exponent: 0, perSecond: 2_000, seconds: 60, limits: BUSY },
    most: 1.03,
  },
};

export async function measure({ quick, progress, rounds = quick ? 2 : 7, seconds = quick ? 0.3 : 0.5 }) {
  const server = await startRedisServer();
  const fleet = createFleet(new URL('../support/leases-worker.mjs', import.meta.url));
  try {
    const busy = await measureBusy({ server, fleet, rounds, seconds, progress });
    const far = await measureFar({ server, fleet, rounds: Math.min(rounds, 3), seconds: quick ? 2 : 5, progress });
    const traffic = {};
    for (const [name, { most, ...settings }] of Object.entries(TRAFFIC)) {
      progress(`virtual time: ${name}`);
      const run = (rule) =>
        simulateFleet({ ...settings, rule, processes: 4, seconds: settings.seconds / (quick ? 6 : 1), seed: SEED });
      traffic[name] = { each: run('each'), leases: run('leases') };
    }
    const versions = { redis: server.version, ioredis: versionOf('ioredis') };
    return { versions, rounds, seconds, busy, far, traffic };
  } finally {
    await fleet.stop();
    server.stop();
  }
}

const nameOf = (processes) => `${processes} ${processes === 1 ? 'process' : 'processes'}`;

async function measureBusy({ server: { port, admin }, fleet, rounds, seconds, progress }) {
  const candidates = ['memory', 'redis', 'leases'];
  const memberOf = (candidate, i) => `${candidate} ${i}`;
  for (const candidate of candidates) {
    for (let i = 0; i < Math.max(...PROCESSES); i++) await fleet.start(memberOf(candidate, i), { candidate, port });
  }
  const workloads = PROCESSES.map((processes) => ({
    name: nameOf(processes),
    processes,
    contestants: candidates.map((name) => ({ name })),
  }));
  return inRounds({
    rounds,
    workloads,
    progress,
    async measure({ name }, { processes }) {
      const spent = await meterScripts(admin);
      const members = Array.from({ length: processes }, (_, i) => memberOf(name, i));
      const figures = await Promise.all(members.map((member) => fleet.ask(member, { seconds })));
      const decisions = figures.reduce((sum, figure) => sum + figure.decisions, 0);
      const cpu = figures.reduce((sum, figure) => sum + figure.cpuMicros * figure.decisions, 0);
      return { decisions, cpuMicros: cpu / decisions, redisMicros: (await spent()).micros / decisions };
    },
  });
}

async function measureFar({ server: { port }, fleet, rounds, seconds, progress }) {
  const candidates = ['redis', 'leases'];
  for (const candidate of candidates) await fleet.start(`far ${candidate}`, { candidate, port, delayMs: FAR_MS });
  return inRounds({
    rounds,
    workloads: [{ name: 'far', contestants: candidates.map((name) => ({ name })) }],
    progress,
    measure: ({ name }, _, isWarmUp) =>
      fleet.ask(`far ${name}`, { seconds: isWarmUp ? 1 : seconds, everyMs: EVERY_MS }),
  });
}

export function report({ rounds, busy, far, traffic }) {
  const cells = createCells({ ...busy, ...far });
  const micros = ({ median, least, most }) => `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;
  const ofRedis = (workload) => cells.ratio('redisMicros', [workload, 'leases'], 'redis');
  const cpu = (workload) => cells.ratio('cpuMicros', [workload, 'leases'], 'memory');
  const tripsOf = ({ each, leases }) => leases.trips / each.trips;
  const admissionsOf = ({ leases }) => 1 - leases.missed / leases.exactly;
  const names = PROCESSES.map(nameOf);
  const farP50 = cells.spread('p50', 'far', 'leases');
  const farP99 = cells.spread('p99', 'far', 'leases');
  const todayP50 = cells.spread('p50', 'far', 'redis');
  return {
    title: 'Leases',
    markdown: `
**One busy account**, two windows that never fill, 64 decisions at a time. CPU of the processes per decision in µs, and of
the Redis server. Median of ${rounds} rounds (least–most).

${table(
  ['', 'memory store', 'Redis', 'leases', 'Redis server, without leases', 'Redis server, with leases'],
  names.map((name) => [
    name,
    ...['memory', 'redis', 'leases'].map((candidate) => micros(cells.spread('cpuMicros', name, candidate))),
    micros(cells.spread('redisMicros', name, 'redis')),
    cells.spread('redisMicros', name, 'leases').median.toPrecision(2),
  ]),
)}

**A Redis that is ${FAR_MS} ms away**, behind a proxy that delays, one decision every ${EVERY_MS} ms: ms per decision.

${table(
  ['', 'p50', 'p99'],
  ['redis', 'leases'].map((name) => [
    name === 'redis' ? 'a call each' : 'leases',
    ...['p50', 'p99'].map((field) => micros(cells.spread(field, 'far', name))),
  ]),
)}

**Many accounts**, in virtual time: four processes with the real limiter and leases, and a memory store that is 0.5 ms
away. A process repeats rejections for a second by itself, with and without leases. Leases that are renewed in one turn of
the event loop, and what goes back in one, share calls of up to 32 *commands*, as in Redis. *Admitted* is relative to one
process that decides about the same requests.

${table(
  [
    'traffic',
    'decisions',
    'calls without leases',
    'with leases',
    'ratio',
    'ratio of commands',
    'admitted too many',
    'admitted',
  ],
  Object.entries(traffic).map(([name, both]) => [
    name,
    whole(both.each.decisions),
    whole(both.each.trips),
    whole(both.leases.trips),
    tripsOf(both).toFixed(3),
    (both.leases.commands / both.each.commands).toFixed(3),
    both.leases.over,
    admissionsOf(both).toFixed(5),
  ]),
)}`,
    targets: [
      ...names.flatMap((name) => [
        ...targetRow(`busy account, ${name}: CPU per decision relative to the memory store`, cpu(name), atMost(1.5)),
        ...targetRow(`busy account, ${name}: time of Redis per decision`, ofRedis(name), atMost(1 / 50, '1/50')),
      ]),
      ...targetRow(`${FAR_MS} ms away: p50 of a busy account in ms`, farP50, atMost(0.1)),
      ...targetRow(
        `${FAR_MS} ms away: p99 in ms, at most the p50 without leases`,
        farP99,
        atMost(todayP50.median, 'p50'),
      ),
      ...Object.entries(traffic).flatMap(([name, both]) => [
        ...targetRow(`calls: ${name}`, tripsOf(both), atMost(TRAFFIC[name].most), (value) => value.toFixed(3)),
        ...targetRow(`admitted: ${name}`, admissionsOf(both), atLeast(0.99), (value) => value.toFixed(5)),
        ...targetRow(`admitted beyond the limit: ${name}`, both.leases.over, atMost(0), String),
      ]),
    ],
    chart: {
      title: 'Leases: CPU of the processes per decision about one busy account',
      unit: 'microseconds',
      scale: 'log',
      better: 'less',
      panels: names.map((name) => ({
        title: name,
        bars: [
          ...bar('memory store', 'floor', cells.spread('cpuMicros', name, 'memory')),
          ...bar('leases', 'ours', cells.spread('cpuMicros', name, 'leases')),
          ...bar('a call of Redis each', 'peer', cells.spread('cpuMicros', name, 'redis')),
        ],
      })),
    },
  };
}
