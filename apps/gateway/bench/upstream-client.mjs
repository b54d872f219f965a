// What the gateway's own client of its upstreams is worth (decision 90): the CPU per proxied request of three builds of
// the same gateway, with its own client, undici's Pool, and node:http. All take turns; the ratio of each round counts.
//
//   node apps/gateway/bench/upstream-client.mjs [rounds] [seconds]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { createFleet } from 'headgate-bench/fleet';
import { cpuMicrosOf } from 'headgate-bench/process-figures';
import { inRounds } from 'headgate-bench/rounds';
import { consolePlugin } from '../scripts/console.mjs';
import { startHeadgate } from './support/gateway-candidates.mjs';
import { startLoads } from './support/gateway-loads.mjs';

const CLIENTS = ['own', 'undici', 'node:http'];
const WORKLOADS = ['small', 'keyed', 'download'];
const WARM_UP_SECONDS = 6;
const [rounds = 7, seconds = 2] = process.argv.slice(2).map(Number);
const APP = fileURLToPath(new URL('..', import.meta.url));
const FOREIGN = join(APP, 'bench/support/foreign-upstream.mjs');

/** Beside `dist`, so that the build finds the library. */
const outFolder = join(APP, 'node_modules/.upstream-clients');

async function buildWith(client) {
  const outdir = join(outFolder, client.replace(':', '-'));
  const replace = {
    name: 'client',
    setup(build) {
      if (client === 'own') return;
      const files = /^\.\/(upstream-request|proxy)\.ts$/;
      build.onResolve({ filter: files }, ({ importer }) =>
        importer.includes('/src/proxy/') ? { path: FOREIGN } : undefined,
      );
    },
  };
  await build({
    entryPoints: { headgate: join(APP, 'src/cli/main.ts') },
    ...{ bundle: true, format: 'cjs', platform: 'node', target: 'node20', outdir, outExtension: { '.js': '.cjs' } },
    external: ['headgate', 'headgate/*', '@opentelemetry/api'],
    define: { HEADGATE_VERSION: '"bench"', UPSTREAM_CLIENT: JSON.stringify(client) },
    plugins: [replace, consolePlugin],
  });
  return pathToFileURL(`${outdir}/`);
}

const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
const upstream = createFleet(new URL('support/gateway-upstream.mjs', import.meta.url));
const loads = await startLoads();
const started = {};
try {
  await upstream.start('upstream', {});
  const { port: upstreamPort } = await upstream.ask('upstream', {});
  for (const client of CLIENTS) {
    const dist = await buildWith(client);
    started[client] = await startHeadgate('memory', { folder, upstreamPort, dist, name: client.replace(':', '-') });
  }
  const figures = await inRounds({
    rounds,
    workloads: WORKLOADS.map((name) => ({ name, contestants: CLIENTS.map((client) => ({ name: client })) })),
    progress: (text) => console.error(text),
    async measure({ name }, { name: workload }, isWarmUp) {
      const { port, pids } = started[name];
      const before = cpuMicrosOf(pids);
      const { requests } = await loads.load({ workload, port, seconds: isWarmUp ? WARM_UP_SECONDS : seconds });
      return (cpuMicrosOf(pids) - before) / requests;
    },
  });
  for (const workload of WORKLOADS) {
    const own = figures[workload].own;
    for (const client of CLIENTS) {
      const micros = figures[workload][client];
      const ratios = micros.map((each, i) => own[i] / each);
      console.log(
        `${workload}, ${client}: ${median(micros).toFixed(1)} µs per request; own / this: ${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`,
      );
    }
  }
} finally {
  for (const each of Object.values(started)) await each.stop();
  await loads.stop();
  await upstream.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(outFolder, { recursive: true, force: true });
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
