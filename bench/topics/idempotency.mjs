// createIdempotency, its floors and its peers take turns, in memory and on one Redis server of the benchmark. Each
// candidate has its own process.
import { createFleet } from 'headgate-bench/fleet';
import { inFreshProcess } from 'headgate-bench/fresh-process';
import { peerVersions, versionWithin } from 'headgate-bench/peers';
import { versionOf } from 'headgate-bench/provenance';
import { meterCommands, startRedisServer } from 'headgate-bench/redis-server';
import { contestantsOf, inRounds } from 'headgate-bench/rounds';
import { BODIES, idempotencyWorkloads } from '../support/idempotency-workloads.mjs';

export { idempotencyReport as report } from '../support/idempotency-report.mjs';

const KEY_COUNT = 5_000;
const PEERS = [
  '@node-idempotency/core',
  '@node-idempotency/storage-adapter-memory',
  '@node-idempotency/storage-adapter-redis',
  '@aws-lambda-powertools/idempotency',
  'express-idempotency',
];

export async function measure(options) {
  const { quick, against, only, profile, progress, rounds = quick ? 2 : 7, seconds = quick ? 0.1 : 0.3 } = options;
  const workloads = idempotencyWorkloads({ against: against !== undefined, only });
  const server = await startRedisServer();
  const fleet = createFleet(new URL('../support/idempotency-worker.mjs', import.meta.url), profile);
  try {
    for (const { name, client, candidate } of contestantsOf(workloads)) {
      progress(`starting ${name}`);
      await fleet.start(name, { client, candidate, port: server.port, keyCount: KEY_COUNT, against });
    }
    const figures = await inRounds({
      rounds,
      workloads,
      progress,
      // The outcomes of earlier rounds would only fill the memory.
      before: () => server.admin.flushall(),
      measure: (...cell) => call(server, fleet, seconds, ...cell),
    });
    progress('fingerprints');
    const prints =
      only === undefined
        ? inFreshProcess(new URL('../support/fingerprint-worker.mjs', import.meta.url), [quick ? 5 : 41])
        : undefined;
    const versions = {
      redis: server.version,
      ioredis: versionOf('ioredis'),
      'node-redis': versionOf('redis'),
      'node-redis 4': versionWithin('@node-idempotency/storage-adapter-redis', 'redis'),
      ...peerVersions(PEERS),
    };
    return { versions, rounds, seconds, keyCount: KEY_COUNT, figures, prints };
  } finally {
    await fleet.stop();
    server.stop();
  }
}

async function call({ admin }, fleet, seconds, { name }, { place, kind, body, concurrency }) {
  const work = { kind, length: BODIES[body], concurrency, seconds };
  await fleet.ask(name, { step: 'prepare', ...work });
  const spent = await meterCommands(admin);
  const figure = await fleet.ask(name, { step: 'run', ...work });
  if (place === 'memory') return figure;
  const { calls, micros } = await spent();
  return { ...figure, commands: calls / figure.calls, serverMicros: micros / figure.calls };
}
