// What a decision costs that another proxy or a program asks for: forward auth behind nginx and Caddy, Envoy's rate limit
// service, and the decision API. All take turns, beside the same proxies without a limit, and headgate as the proxy.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFleet } from 'headgate-bench/fleet';
import { cpuMicrosOf } from 'headgate-bench/process-figures';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, contestantsOf, inRounds } from 'headgate-bench/rounds';
import { doorNames, doorVersions, startDoor, WORKLOADS } from '../support/doors-candidates.mjs';
import { startGrpcLoad } from '../support/doors-grpc.mjs';
import { startLoads } from '../support/gateway-loads.mjs';
import { shareOfOtherWork } from '../support/other-work.mjs';

export { doorsReport as report } from '../support/doors-report.mjs';

const WARM_UP_REQUESTS = 10_000;
const MOST_WARM_UP_MS = 10_000;

export async function measure(options) {
  const { quick, only, progress, rounds = quick ? 2 : 7, seconds = quick ? 1 : 2 } = options;
  if (process.platform !== 'linux') throw new Error('this topic needs Linux, which tells the CPU time of a process');
  const otherWork = await shareOfOtherWork();
  const programs = doorVersions();
  const contestants = doorNames(programs).map((candidate) => ({ candidate }));
  const workloads = chooseWorkloads([{ name: 'decisions', contestants }], only);
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const upstream = createFleet(new URL('../support/gateway-upstream.mjs', import.meta.url));
  const [loads, grpc] = [await startLoads(), await startGrpcLoad()];
  const started = {};
  const load = (name) => {
    const { port } = started[name];
    const workload = WORKLOADS[name];
    return workload === 'grpc' ? grpc.load({ port, seconds }) : loads.load({ workload, port, seconds });
  };
  const run = async ({ name }, _workload, isWarmUp) => {
    if (isWarmUp) {
      const end = performance.now() + MOST_WARM_UP_MS;
      for (let sent = 0; sent < WARM_UP_REQUESTS && performance.now() < end; ) sent += (await load(name)).requests;
      return undefined;
    }
    const { headgate, proxy } = started[name];
    const before = [cpuMicrosOf(headgate), cpuMicrosOf(proxy)];
    const { requests, seconds: took, ...latency } = await load(name);
    const [headgateMicros, proxyMicros] = [headgate, proxy].map(
      (pids, i) => (cpuMicrosOf(pids) - before[i]) / requests,
    );
    return { headgateMicros, proxyMicros, perSecond: requests / took, ...latency };
  };
  try {
    await upstream.start('upstream', {});
    const { port: upstreamPort } = await upstream.ask('upstream', {});
    for (const { name } of contestantsOf(workloads)) {
      progress(`starting ${name}`);
      started[name] = await startDoor(name, { folder, upstreamPort });
    }
    const figures = await inRounds({ rounds, workloads, progress, measure: run });
    const versions = { wrk: loads.wrk, ...programs, '@grpc/grpc-js': versionOf('@grpc/grpc-js') };
    return { versions, rounds, seconds, otherWork, figures };
  } finally {
    for (const door of Object.values(started)) await door.stop();
    await Promise.all([loads.stop(), grpc.stop(), upstream.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
}
