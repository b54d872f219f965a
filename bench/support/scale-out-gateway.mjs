import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './redis-server.mjs';
import { ACCOUNTS, accountName, HOT_ACCOUNTS, HOT_LIMITS, hotName, LIMITS, ROUTE, TOKEN } from './scale-out-limits.mjs';

const HEADGATE = fileURLToPath(new URL('../../dist/headgate.cjs', import.meta.url));
const READY_WITHIN_MS = 30_000;
const DEADLINE_MS = 10_000;

/**
 * Starts `headgate serve`, the product as users run it, in front of an upstream. Its log is discarded.
 * @param folder where its config file is written
 */
export async function startGateway({ folder, name, store, upstreamPort }) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const file = `${folder}/${name}.json`;
  writeFileSync(file, JSON.stringify(config({ port, adminPort, store, upstreamPort })));
  const child = spawn(process.execPath, [HEADGATE, 'serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await ready(child, port, name);
  return {
    port,
    stop() {
      process.off('exit', kill);
      kill();
    },
    /** Microseconds of CPU since its start, from its own metrics. */
    async cpuMicros() {
      const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      return Number(/^process_cpu_seconds_total (\S+)/m.exec(text)[1]) * 1e6;
    },
  };
}

function config({ port, adminPort, store, upstreamPort }) {
  const all = (count, nameOf) => Array.from({ length: count }, (_, i) => nameOf(i));
  const [accounts, hot] = [all(ACCOUNTS, accountName), all(HOT_ACCOUNTS, hotName)];
  return {
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
    store,
    storeDeadlineMs: DEADLINE_MS,
    upstream: `http://127.0.0.1:${upstreamPort}`,
    keys: [{ token: TOKEN, application: 'app' }],
    accounts: [...accounts, ...hot].map((id) => ({ id, application: 'app' })),
    routes: [{ route: ROUTE, account: 'header.x-account' }],
    limits: { default: LIMITS, accounts: Object.fromEntries(hot.map((id) => [id, HOT_LIMITS])) },
  };
}

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
