// Decisions per second by 1, 2 and 4 processes on one Redis and on a cluster: gateways under HTTP load, and the limiter
// alone.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFleet } from 'headgate-bench/fleet';
import { versionOf } from 'headgate-bench/provenance';
import { chooseWorkloads, inRounds } from 'headgate-bench/rounds';
import { startGateway } from '../support/scale-out-gateway.mjs';
import { HOT_MOST, hotName } from '../support/scale-out-limits.mjs';
import { measureBytesPerKey, meterServers, STORES } from '../support/scale-out-store.mjs';

export { scaleOutReport as report } from '../support/scale-out-report.mjs';

const PROCESSES = ['1', '2', '4'];
const MOST = Math.max(...PROCESSES.map(Number));
/**
 * Checks in flight per process. Gateways have fewer, because they and their load share the cores with everything else.
 */
const IN_FLIGHT = { limiter: 64, gateway: 16 };
const WARM_UP_SECONDS = { limiter: 1, gateway: 4 };

export async function measure(options) {
  const { quick, only, profile, progress, rounds = quick ? 1 : 5, seconds = quick ? 0.2 : 0.5 } = options;
  const figures = {};
  const bytesPerKey = {};
  let redis;
  for (const [storeName, start] of Object.entries(STORES)) {
    const workloads = chooseWorkloads(workloadsOn(storeName), only);
    if (workloads.length === 0) continue;
    progress(`${storeName}: starting`);
    const store = await start();
    redis = store.servers[0].version;
    const subjects = await openSubjects(
      store,
      profile,
      workloads.map(({ kind }) => kind),
    );
    try {
      progress(`${storeName}: warming up`);
      for (const { kind } of workloads)
        await warmUp(subjects[kind], IN_FLIGHT[kind], quick ? 0.3 : WARM_UP_SECONDS[kind]);
      const measureCell = ({ candidate }, { kind }) =>
        run(store, subjects[kind], { kind, processes: Number(candidate), seconds });
      Object.assign(figures, await inRounds({ rounds, workloads, progress, measure: measureCell }));
      bytesPerKey[storeName] = await measureBytesPerKey(store.servers);
    } finally {
      await subjects.stop();
      store.stop();
    }
  }
  const versions = { redis, ioredis: versionOf('ioredis') };
  return { versions, rounds, seconds, inFlight: IN_FLIGHT, hotMost: HOT_MOST, bytesPerKey, figures };
}

function workloadsOn(store) {
  return Object.keys(IN_FLIGHT).map((kind) => ({
    name: `${kind}, ${store}`,
    kind,
    store,
    contestants: PROCESSES.map((candidate) => ({ candidate })),
  }));
}

/**
 * What is measured, by kind: `ask(index, request)` loads one of its processes, `cpuMicros(count)` is the CPU time that
 * the first `count` of them have used, undefined if the processes report it themselves.
 */
async function openSubjects(store, profile, kinds) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const opened = [];
  const stop = async () => {
    for (const { stop } of opened.reverse()) await stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const open = { limiter: openLimiters, gateway: openGateways };
  const subjects = { stop };
  try {
    for (const kind of kinds) subjects[kind] = await open[kind]({ store, profile, folder, opened });
    return subjects;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function openLimiters({ store, profile, opened }) {
  const fleet = createFleet(new URL('../support/scale-out-worker.mjs', import.meta.url), profile);
  opened.push(fleet);
  const ports = store.servers.map(({ port }) => port);
  for (let i = 0; i < MOST; i++) await fleet.start(`limiter ${i}`, { ports, isCluster: store.isCluster, index: i });
  return { ask: (i, request) => fleet.ask(`limiter ${i}`, request), cpuMicros: async () => undefined };
}

async function openGateways({ store, folder, opened }) {
  const upstream = createFleet(new URL('../support/scale-out-upstream.mjs', import.meta.url));
  const loads = createFleet(new URL('../support/scale-out-load.mjs', import.meta.url));
  opened.push(upstream, loads);
  await upstream.start('upstream', {});
  const { port: upstreamPort } = await upstream.ask('upstream', {});
  const gateways = [];
  for (let i = 0; i < MOST; i++) {
    const gateway = await startGateway({ folder, name: `gateway-${i}`, store: store.url, upstreamPort });
    opened.push(gateway);
    gateways.push(gateway);
    await loads.start(`load ${i}`, { port: gateway.port, index: i });
  }
  return {
    ask: (i, request) => loads.ask(`load ${i}`, request),
    async cpuMicros(count) {
      const used = await Promise.all(gateways.slice(0, count).map((gateway) => gateway.cpuMicros()));
      return used.reduce((sum, micros) => sum + micros, 0);
    },
  };
}

/** Loads each process alone. Otherwise the code of the last processes would be compiled while they are measured. */
async function warmUp(subject, inFlight, seconds) {
  for (let i = 0; i < MOST; i++) await subject.ask(i, { step: 'load', inFlight, seconds });
}

let hotCount = 0;

async function run({ servers }, subject, { kind, processes, seconds }) {
  const askAll = (request) => Promise.all(Array.from({ length: processes }, (_, i) => subject.ask(i, request)));
  const inFlight = IN_FLIGHT[kind];
  const before = await subject.cpuMicros(processes);
  const spent = await meterServers(servers);
  const loads = await askAll({ step: 'load', inFlight, seconds });
  const { calls, scriptMicros, cpuMicros: serverMicros } = await spent();
  const sum = (field) => loads.reduce((total, load) => total + load[field], 0);
  const cpuMicros = before === undefined ? sum('cpuMicros') : (await subject.cpuMicros(processes)) - before;
  await checkExactness(askAll, { inFlight, processes });
  const decisions = sum('decisions');
  return {
    perSecond: loads.reduce((total, load) => total + load.decisions / load.seconds, 0),
    decisionsPerCall: decisions / calls,
    scriptMicros: scriptMicros / decisions,
    serverMicros: serverMicros / decisions,
    cpuMicros: cpuMicros / decisions,
  };
}

/** A new hot account, whose windows start now: all processes together must let through exactly its max. */
async function checkExactness(askAll, { inFlight, processes }) {
  const account = hotName(hotCount++);
  const requests = HOT_MOST + 50;
  const answers = await askAll({ step: 'rush', account, requests, inFlight });
  const accepted = answers.reduce((sum, answer) => sum + answer.accepted, 0);
  if (accepted !== HOT_MOST) {
    throw new Error(
      `${processes} processes accepted ${accepted} of ${processes * requests} requests (expected ${HOT_MOST}, the max)`,
    );
  }
}
