// npm run bench:idempotency: createIdempotency beside its floors and its peers, interleaved, in memory and on one server of its own.
// --only=redis,replay,headgate|against  --rounds=9  --seconds=0.4  --against=folder/of/another/dist  --cpu-prof=folder  --write
import { parseArgs } from 'node:util';
import { createFleet } from './support/fleet.mjs';
import { idempotencyReport } from './support/idempotency-report.mjs';
import { BODIES, idempotencyWorkloads, nameOf } from './support/idempotency-workloads.mjs';
import { installPeers, peerVersion } from './support/peers.mjs';
import { meterCommands, startRedisServer } from './support/redis-server.mjs';
import { inFreshProcess, progress, provenance, save, versionOf, writeSection } from './support/report.mjs';

const KEY_COUNT = 5_000;
const PEERS = [
  '@node-idempotency/core',
  '@node-idempotency/storage-adapter-memory',
  '@node-idempotency/storage-adapter-redis',
  '@aws-lambda-powertools/idempotency',
  'express-idempotency',
];
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '0.4' },
    against: { type: 'string' },
    'cpu-prof': { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const rounds = Number(options.rounds);
const seconds = Number(options.seconds);
const { against, only } = options;
const profile = options['cpu-prof'];

installPeers();
const workloads = idempotencyWorkloads({ against: against !== undefined, only });
const contestants = new Map(workloads.flatMap((workload) => workload.contestants.map((one) => [nameOf(one), one])));
const server = await startRedisServer();
const fleet = createFleet('support/idempotency-worker.mjs', profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []);
const figures = {};

async function measure(name, { place, kind, body, concurrency }, time) {
  const work = { kind, length: BODIES[body], concurrency, seconds: time };
  await fleet.ask(name, { step: 'prepare', ...work });
  const spent = await meterCommands(server.admin);
  const figure = await fleet.ask(name, { step: 'run', ...work });
  if (place === 'memory') return figure;
  const { calls, micros } = await spent();
  return { ...figure, commands: calls / figure.calls, serverMicros: micros / figure.calls };
}

try {
  for (const [name, { client, candidate }] of contestants) {
    await fleet.start(name, { client, candidate, port: server.port, keyCount: KEY_COUNT, against });
  }
  // The first round only warms up.
  for (let round = 0; round <= rounds; round++) {
    // What earlier rounds have kept would only fill the memory.
    await server.admin.flushall();
    for (const workload of workloads) {
      progress(`round ${round} of ${rounds}: ${workload.name}`);
      const names = workload.contestants.map(nameOf);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const figure = await measure(name, workload, seconds);
        if (round === 0) continue;
        figures[workload.name] ??= {};
        figures[workload.name][name] ??= [];
        figures[workload.name][name].push(figure);
      }
    }
  }
} finally {
  await fleet.stop();
  server.stop();
}
const prints = only === '' ? inFreshProcess('fingerprint.mjs', ['json']) : undefined;

const versions = {
  redis: server.version,
  ioredis: versionOf('ioredis'),
  'node-redis': versionOf('redis'),
  ...Object.fromEntries(PEERS.map((name) => [name, peerVersion(name)])),
};
const result = { provenance: { ...provenance(), versions }, rounds, seconds, keyCount: KEY_COUNT, figures, prints };
save('idempotency', result);
const report = idempotencyReport(result);
console.log(`\n${report}`);
if (options.write) writeSection('idempotency', report);
