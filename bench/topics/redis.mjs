// headgate's Redis store, its floors and its peers take turns on one Redis server of the benchmark. Each candidate has
// its own process.
import { createFleet } from '../support/fleet.mjs';
import { peerVersions } from '../support/peers.mjs';
import { versionOf } from '../support/provenance.mjs';
import { meterScripts, startRedisServer } from '../support/redis-server.mjs';
import { redisWorkloads } from '../support/redis-workloads.mjs';
import { contestantsOf, inRounds } from '../support/rounds.mjs';

export { redisReport as report } from '../support/redis-report.mjs';

const KEY_COUNT = 10_000;
const PEERS = ['rate-limiter-flexible', 'rate-limit-redis', 'async-ratelimiter'];

export async function measure(options) {
  const { quick, against, only, profile, progress, rounds = quick ? 2 : 7, seconds = quick ? 0.1 : 0.4 } = options;
  const workloads = redisWorkloads({ against: against !== undefined, only });
  const server = await startRedisServer();
  const fleet = createFleet('support/redis-worker.mjs', profile);
  try {
    for (const { name, client, candidate } of contestantsOf(workloads)) {
      progress(`starting ${name}`);
      await fleet.start(name, { client, candidate, port: server.port, keyCount: KEY_COUNT, against });
    }
    const figures = await inRounds({
      rounds,
      workloads,
      progress,
      measure: (...cell) => decide(server, fleet, seconds, ...cell),
    });
    const versions = {
      redis: server.version,
      ioredis: versionOf('ioredis'),
      'node-redis': versionOf('redis'),
      ...peerVersions(PEERS),
    };
    return { versions, rounds, seconds, keyCount: KEY_COUNT, figures };
  } finally {
    await fleet.stop();
    server.stop();
  }
}

async function decide({ admin }, fleet, seconds, { name }, { keys, concurrency }, isWarmUp) {
  const spent = await meterScripts(admin);
  const figure = await fleet.ask(name, { keys, concurrency, seconds: isWarmUp ? Math.max(seconds, 0.4) : seconds });
  const { calls, micros } = await spent();
  const { decisions } = figure;
  return {
    ...figure,
    callsPerDecision: calls / decisions,
    microsPerCall: micros / calls,
    microsPerDecision: micros / decisions,
  };
}
