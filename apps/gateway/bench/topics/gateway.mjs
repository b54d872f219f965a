// `headgate serve` as a proxy, beside other proxies with a limit and a bare one: CPU per request, latency, throughput of
// large bodies. All take turns.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createFleet } from 'headgate-bench/fleet';
import { peerVersions } from 'headgate-bench/peers';
import { cpuMicrosOf } from 'headgate-bench/process-figures';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, inRounds } from 'headgate-bench/rounds';
import {
  candidateNames,
  FASTIFY,
  FLOOR,
  MEMORY,
  NODE_FLOOR,
  programVersions,
  REDIS,
  startCandidate,
} from '../support/gateway-candidates.mjs';
import { startLoads } from '../support/gateway-loads.mjs';
import { LARGE_BYTES, MIB } from '../support/gateway-settings.mjs';
import { measureStages } from '../support/gateway-stages.mjs';
import { shareOfOtherWork } from '../support/other-work.mjs';

export { gatewayReport as report } from '../support/gateway-report.mjs';

const PEERS = ['@fastify/http-proxy', '@fastify/rate-limit', 'http-proxy-middleware', 'express-rate-limit'];
const PACKAGES = ['undici', 'fastify', 'express', 'ioredis', 'pino'];
/** After so many requests the code that a workload needs is compiled. */
const WARM_UP_REQUESTS = { small: 20_000, keyed: 20_000, download: 40, upload: 40 };
/** A process that had a pause has lost compiled code: V8 collects it when it is idle. So it gets a load before each round. */
const AFTER_PAUSE_SECONDS = 1;
/** On a busy machine the slowest candidate would take too long. */
const MOST_WARM_UP_MS = 10_000;

/** `against` is a `dist` folder of another build of headgate, which is measured as well. */
export async function measure(options) {
  const { quick, only, against, profile, progress, rounds = quick ? 2 : 9, seconds = quick ? 1 : 2 } = options;
  if (process.platform !== 'linux') throw new Error('this topic needs Linux, which tells the CPU time of a process');
  // Each process that is started ends with this one.
  process.setMaxListeners(0);
  const otherWork = await shareOfOtherWork();
  const programs = programVersions();
  const workloads = chooseWorkloads(workloadsOf(candidateNames({ programs, against: against !== undefined })), only);
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const upstream = createFleet(new URL('../support/gateway-upstream.mjs', import.meta.url));
  const started = {};
  const loads = await startLoads();
  const warmUp = async (workload, { port }) => {
    const end = performance.now() + MOST_WARM_UP_MS;
    for (let sent = 0; sent < WARM_UP_REQUESTS[workload] && performance.now() < end; ) {
      sent += (await loads.load({ workload, port, seconds })).requests;
    }
  };
  const run = async ({ name }, { name: workload }, isWarmUp) => {
    const candidate = started[workload][name];
    if (isWarmUp) return warmUp(workload, candidate);
    const { port, pids } = candidate;
    await loads.load({ workload, port, seconds: AFTER_PAUSE_SECONDS });
    const before = cpuMicrosOf(pids);
    const { requests, seconds: took, ...latency } = await loads.load({ workload, port, seconds });
    const cpuMicros = (cpuMicrosOf(pids) - before) / requests;
    const perSecond = requests / took;
    if (!isLarge(workload)) return { cpuMicros, perSecond, ...latency };
    return { cpuMicros, mibPerSecond: (perSecond * LARGE_BYTES) / MIB };
  };
  try {
    await upstream.start('upstream', {});
    const { port: upstreamPort } = await upstream.ask('upstream', {});
    const dist = against && pathToFileURL(`${resolve(against)}/`);
    const world = { folder, upstreamPort, against: dist, profile };
    // In a process that also sent large bodies, small requests cost some proxies twice as much.
    for (const { name: workload, contestants } of workloads) {
      started[workload] = {};
      for (const { name } of contestants) {
        progress(`starting ${name} for ${workload}`);
        started[workload][name] = await startCandidate(name, world);
      }
    }
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    progress('shares of the stages');
    const stages = await measureStages(world, { loads, workloads, warmUp, seconds: quick ? 2 : 5 });
    const versions = {
      ...{ redis: started.small?.[REDIS]?.redis, wrk: loads.wrk, ...programs },
      ...Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
      ...peerVersions(PEERS),
    };
    return { versions, rounds, seconds, otherWork, stages, figures };
  } finally {
    for (const candidate of Object.values(started).flatMap(Object.values)) await candidate.stop();
    await loads.stop();
    await upstream.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const isLarge = (workload) => workload === 'download' || workload === 'upload';

function workloadsOf(names) {
  const always = [FLOOR, NODE_FLOOR, MEMORY];
  const own = names.filter((name) => always.includes(name) || name.startsWith('other build'));
  const candidates = { small: names, keyed: [...own, REDIS], download: [...own, FASTIFY], upload: [...own, FASTIFY] };
  return Object.entries(candidates).map(([name, list]) => ({
    name,
    contestants: list.map((candidate) => ({ candidate })),
  }));
}
