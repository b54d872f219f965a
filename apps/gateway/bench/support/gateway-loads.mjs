import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createFleet } from 'headgate-bench/fleet';
import { LARGE_BYTES, REQUESTS, targetsOf, textOf } from './gateway-settings.mjs';

const SCRIPT = fileURLToPath(new URL('gateway-wrk.lua', import.meta.url));
const run = promisify(execFile);

/**
 * Loads one proxy at a time. wrk sends the small requests if it is installed, because it needs the least CPU. A process
 * of this benchmark sends the large ones, since wrk does not say how much of an unfinished one was sent.
 */
export async function startLoads() {
  const wrk = wrkVersion();
  const own = createFleet(new URL('gateway-load.mjs', import.meta.url));
  await own.start('load', {});
  let runs = 0;
  return {
    wrk,
    /** @returns `{ requests, seconds, p50Micros, p99Micros }` */
    async load({ workload, port, seconds }) {
      const prefix = `run-${runs++}-`;
      const isLarge = workload === 'download' || REQUESTS[workload].bodyBytes === LARGE_BYTES;
      const { failed, ...figure } =
        wrk === undefined || isLarge
          ? await own.ask('load', { workload, port, seconds, prefix })
          : await loadByWrk(REQUESTS[workload], { port, seconds, prefix });
      if (failed > 0 || figure.requests === 0) throw new Error(`${workload}: ${failed} of the requests failed`);
      return figure;
    },
    stop: () => own.stop(),
  };
}

async function loadByWrk(request, { port, seconds, prefix }) {
  const { method, fields, connections, idempotencyKeys } = request;
  const options = ['-t1', `-c${connections}`, `-d${Math.max(1, Math.round(seconds))}s`, '-s', SCRIPT];
  const targets = targetsOf(request).join(' ');
  const args = [method, textOf(request), idempotencyKeys ? prefix : '', targets, ...Object.entries(fields).flat()];
  const { stdout } = await run('wrk', [...options, `http://127.0.0.1:${port}`, '--', ...args]);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

/** @returns undefined if wrk is not installed */
function wrkVersion() {
  // It prints its version, and ends with an error because it has no URL.
  const { error, stdout = '', stderr = '' } = spawnSync('wrk', ['-v'], { encoding: 'utf8' });
  return error ? undefined : (/wrk \S*?(\d+\.\d+\.\d+)/.exec(stdout + stderr)?.[1] ?? 'unknown');
}
