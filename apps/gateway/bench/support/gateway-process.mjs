import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from 'headgate-bench/redis-server';

const DIST = new URL('../../dist/', import.meta.url);
const READY_WITHIN_MS = 30_000;

/**
 * Starts `headgate serve`, the product as users run it. Its log is discarded.
 * @param folder where its config file is written
 * @param config its config; the two listeners are filled in
 * @param dist folder of the build, with a slash at its end; this repository's by default
 * @param profile folder for a CPU profile, which is written when the gateway ends by itself
 */
export async function startGatewayProcess({ folder, name, config, dist = DIST, profile }) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const listeners = { listen: { host: '127.0.0.1', port }, admin: { host: '127.0.0.1', port: adminPort } };
  const file = `${folder}/${name}.json`;
  writeFileSync(file, JSON.stringify({ ...listeners, ...config }));
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const args = [...flags, fileURLToPath(new URL('headgate.cjs', dist)), 'serve', '--config', file];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await ready(child, port, name);
  await allListen(adminPort, config.workers);
  return {
    port,
    pid: child.pid,
    async stop() {
      process.off('exit', kill);
      if (profile === undefined) kill();
      else {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
    },
    /** Microseconds of CPU since its start, from its own metrics. */
    async cpuMicros() {
      return Number(/^process_cpu_seconds_total (\S+)/m.exec(await metricsOf(adminPort))[1]) * 1e6;
    },
  };
}

/** Waits until all workers of a gateway listen. */
async function allListen(adminPort, workers = 1) {
  if (workers === 1) return;
  const end = performance.now() + READY_WITHIN_MS;
  while (!(await metricsOf(adminPort)).includes(`\nheadgate_workers ${workers}\n`)) {
    if (performance.now() > end) throw new Error(`${workers} workers did not listen within ${READY_WITHIN_MS} ms`);
    await wait(50);
  }
}

const metricsOf = async (adminPort) => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();

/** Waits until the gateway serves and reaches its store. Without the store it would answer as well, but degraded. */
async function ready(child, port, name) {
  const end = performance.now() + READY_WITHIN_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${name} ended during its start with code ${child.exitCode}`);
    const health = await fetch(`http://127.0.0.1:${port}/healthz`).then(
      (response) => response.json(),
      () => undefined,
    );
    if (health?.status === 'ok') return;
    if (performance.now() > end) throw new Error(`${name} was not ready with its store within ${READY_WITHIN_MS} ms`);
    await wait(50);
  }
}
