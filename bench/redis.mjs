// npm run bench:redis: headgate's Redis store beside its floors and rate-limiter-flexible, interleaved, on one server of its own.
// --only=spread,64|256,ioredis,headgate  --rounds=9  --seconds=0.4  --against=folder/of/another/dist  --cpu-prof=folder  --write
import { parseArgs } from 'node:util';
import { createFleet } from './support/fleet.mjs';
import { installPeers, peerVersion } from './support/peers.mjs';
import { redisReport } from './support/redis-report.mjs';
import { meterScripts, startRedisServer } from './support/redis-server.mjs';
import { nameOf, redisWorkloads } from './support/redis-workloads.mjs';
import { progress, provenance, save, versionOf, writeSection } from './support/report.mjs';

const KEY_COUNT = 10_000;
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
const workloads = redisWorkloads({ against: against !== undefined, only });
const contestants = new Map(workloads.flatMap((workload) => workload.contestants.map((one) => [nameOf(one), one])));
const server = await startRedisServer();
const fleet = createFleet('support/redis-worker.mjs', profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []);
const figures = {};

async function measure(name, { keys, concurrency }, time) {
  const spent = await meterScripts(server.admin);
  const figure = await fleet.ask(name, { keys, concurrency, seconds: time });
  const { calls, micros } = await spent();
  const { decisions } = figure;
  return {
    ...figure,
    callsPerDecision: calls / decisions,
    microsPerCall: micros / calls,
    microsPerDecision: micros / decisions,
  };
}

try {
  for (const [name, { client, candidate }] of contestants) {
    await fleet.start(name, { client, candidate, port: server.port, keyCount: KEY_COUNT, against });
  }
  // The first round only warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const workload of workloads) {
      progress(`round ${round} of ${rounds}: ${workload.name}`);
      const names = workload.contestants.map(nameOf);
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const figure = await measure(name, workload, round === 0 ? Math.max(seconds, 0.4) : seconds);
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

const versions = {
  redis: server.version,
  ioredis: versionOf('ioredis'),
  'node-redis': versionOf('redis'),
  'rate-limiter-flexible': peerVersion('rate-limiter-flexible'),
};
const result = { provenance: { ...provenance(), versions }, rounds, seconds, keyCount: KEY_COUNT, figures };
save('redis', result);
const report = redisReport(result);
console.log(`\n${report}`);
if (options.write) writeSection('redis', report);
