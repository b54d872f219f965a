// headgate's Redis store, its floors and its peers take turns on one Redis server of the benchmark. Each candidate has
// its own process.
import { createFleet } from 'headgate-bench/fleet';
import { peerVersions } from 'headgate-bench/peers';
import { versionOf } from 'headgate-bench/provenance';
import { meterScripts, startRedisServer } from 'headgate-bench/redis-server';
import { contestantsOf, inRounds } from 'headgate-bench/rounds';
import { redisWorkloads } from '../support/redis-workloads.mjs';

export { redisReport as report } from '../support/redis-report.mjs';

const KEY_COUNT = 10_000;
const PEERS = ['rate-limiter-flexible', 'rate-limit-redis', 'async-ratelimiter'];

export async function measure(options) {
  const { quick, against, only, profile, progress, rounds = quick ? 2 : 7, seconds = quick ? 0.1 : 0.4 } = options;
  const workloads = redisWorkloads({ against: against !== undefined, only });
  const server = await startRedisServer();
  const fleet = createFleet(new URL('../support/redis-worker.mjs', import.meta.url), profile);
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
