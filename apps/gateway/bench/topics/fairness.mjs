// What one tenant's attack costs another tenant of the same gateway. The polite tenant is measured alone, while the
// same attack goes to a server that does nothing with it, and beside the attack on its own gateway.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { createFleet } from 'headgate-bench/fleet';
import { forgetPeak, peakRss } from 'headgate-bench/process-figures';
import { startRedisServer } from 'headgate-bench/redis-server';
import { chooseWorkloads, inRounds } from 'headgate-bench/rounds';
import { ATTACKS } from '../support/fairness-attacks.mjs';
import { ALONE, BESIDE, ELSEWHERE, fairnessReport } from '../support/fairness-report.mjs';
import { fairnessConfig } from '../support/fairness-tenants.mjs';
import { startGatewayProcess } from '../support/gateway-process.mjs';
import { shareOfOtherWork } from '../support/other-work.mjs';

const LINK_MBIT = 100;
/** From the start of the attack until the polite tenant begins, unless the attack says otherwise. */
const LEAD_MS = 300;
const WARM_UP_SECONDS = 1;
/** A gateway is quiet if it uses less than this share of a core for this long. */
const [QUIET_SHARE, QUIET_MS] = [0.1, 200];
const QUIET_WITHIN_MS = 30_000;

export const report = (result) => fairnessReport(result, figuresBefore());

/** The figures of the last commit without bounds per application. They show that the attacks work. */
function figuresBefore() {
  return JSON.parse(readFileSync(new URL('../results/fairness-before.json', import.meta.url), 'utf8'));
}

/** `against` is a `dist` folder that is measured in place of this build. */
export async function measure(options) {
  const { quick, only, against, profile, progress, rounds = quick ? 1 : 5, seconds = quick ? 1 : 1.2 } = options;
  const dist = against === undefined ? undefined : pathToFileURL(`${resolve(against)}/`);
  const contestants = [ALONE, ELSEWHERE, BESIDE].map((candidate) => ({ candidate }));
  const workloads = Object.keys(ATTACKS).map((name) => ({ name, contestants }));
  const otherWork = await shareOfOtherWork();
  const figures = {};
  let redis;
  for (const workload of chooseWorkloads(workloads, only)) {
    const world = await openWorld(workload.name, { dist, profile });
    redis = world.redisVersion ?? redis;
    try {
      progress(`preparing: ${workload.name}`);
      const idleMib = await warmUp(world);
      await world.attacker({ step: 'prepare', port: world.attacked.port });
      // The gateways are warm already.
      const run = async ({ candidate }, _, isWarmUp) =>
        isWarmUp ? undefined : { ...(await measurePhase(world, candidate, seconds)), idleMib };
      Object.assign(figures, await inRounds({ rounds, workloads: [workload], progress, measure: run }));
    } finally {
      await world.stop();
    }
  }
  return { versions: redis === undefined ? {} : { redis }, rounds, seconds, otherWork, linkMbit: LINK_MBIT, figures };
}

/**
 * Two gateways of equal config. Attacks go to `attacked`, or to the `sink`, so `spared` is never changed by one. The
 * two gateways share one upstream process; each has its own Redis and its own link, if the attack needs Redis.
 */
async function openWorld(name, { dist, profile }) {
  const { onRedis, freshTenants, keyCount } = ATTACKS[name];
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const fleet = createFleet(new URL('../support/fairness-attacker.mjs', import.meta.url), profile);
  const [upstreams, polite, link] = ['upstream', 'polite', 'link'].map((member) =>
    createFleet(new URL(`../support/fairness-${member}.mjs`, import.meta.url)),
  );
  const servers = [];
  const gateways = [];
  const stop = async () => {
    for (const gateway of gateways) gateway.stop();
    for (const one of [fleet, upstreams, polite, link]) await one.stop();
    for (const server of servers) server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await fleet.start('attacker', { attack: name });
    await polite.start('polite', {});
    await upstreams.start('upstream', {});
    await upstreams.start('sink', {});
    const { ports: upstreamPorts } = await upstreams.ask('upstream', {});
    const [sinkPort] = (await upstreams.ask('sink', {})).ports;
    const stores = ['memory', 'memory'];
    if (onRedis) {
      for (let i = 0; i < stores.length; i++) servers.push(await startRedisServer());
      const bytesPerSecond = (LINK_MBIT * 1e6) / 8;
      await link.start('link', { redisPorts: servers.map(({ port }) => port), bytesPerSecond });
      const { ports } = await link.ask('link', {});
      for (const [i, port] of ports.entries()) stores[i] = `redis://127.0.0.1:${port}`;
    }
    for (const [i, store] of stores.entries()) {
      const config = fairnessConfig({ store, upstreamPort: upstreamPorts[i], freshTenants, keyCount });
      gateways.push(await startGatewayProcess({ folder, name: `gateway-${i}`, config, dist }));
    }
    const [attacked, spared] = gateways;
    return {
      ...{
        attacked,
        spared,
        sink: { port: sinkPort },
        stop,
        redisVersion: servers[0]?.version,
        leadMs: ATTACKS[name].leadMs ?? LEAD_MS,
      },
      attacker: (request) => fleet.ask('attacker', request),
      polite: (request) => polite.ask('polite', request),
      /** @returns the most connections of the attacked gateway to the upstream since the last `forget the peak` */
      upstream: async (step) => (await upstreams.ask('upstream', { step })).most[0],
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @returns the most memory of the attacked gateway in MiB before any attack */
async function warmUp({ attacked, spared, polite }) {
  for (const { port, pid } of [spared, attacked]) await polite({ port, pid, seconds: WARM_UP_SECONDS });
  return mibOf(peakRss(attacked.pid));
}

async function measurePhase(world, phase, seconds) {
  const { attacked, spared, sink, attacker, polite, upstream, leadMs } = world;
  await Promise.all([attacked, spared].map(quiet));
  forgetPeak(attacked.pid);
  await upstream('forget the peak');
  if (phase !== ALONE) {
    await attacker({ step: 'start', port: (phase === BESIDE ? attacked : sink).port });
    await wait(leadMs);
  }
  const { port, pid } = phase === BESIDE ? attacked : spared;
  const figure = await polite({ port, pid, seconds });
  const { statuses } = phase === ALONE ? { statuses: {} } : await attacker({ step: 'stop' });
  const peakMib = mibOf(peakRss(attacked.pid));
  return { ...figure, peakMib, upstreamConnections: await upstream(), attacker: statuses };
}

const mibOf = (bytes) => (bytes === undefined ? undefined : bytes / 2 ** 20);

/** Waits until a gateway has no more work from an earlier attack. */
async function quiet(gateway) {
  const end = performance.now() + QUIET_WITHIN_MS;
  for (;;) {
    const before = await gateway.cpuMicros();
    await wait(QUIET_MS);
    const used = (await gateway.cpuMicros()) - before;
    if (used < QUIET_SHARE * QUIET_MS * 1_000 || performance.now() > end) return;
  }
}
