import { deepStrictEqual, doesNotMatch } from 'node:assert/strict';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run, start } from './process.mjs';

const HERE = import.meta.dirname;
const BUILD_MS = 300_000;
const SERVE_MS = 60_000;
/** Longer than what headgate works on in one turn of the event loop. */
const LONG = 100_000;

/**
 * The applications of Next.js: the one of `next/app`, with each kind of middleware. Its route handlers run on both
 * runtimes, so each application tries these too.
 */
export const NEXT_APPS = [
  nextApp('16', 'proxy', ''),
  nextApp('16', 'middleware', ''),
  nextApp('15', 'middleware', "runtime: 'nodejs'"),
  nextApp('15', 'middleware', ''),
];

function nextApp(version, file, config) {
  const runtime = file === 'proxy' || config !== '' ? 'nodejs' : 'edge';
  const packages = join(HERE, 'next', version);
  const folder = join(packages, '.run', `${file}-${runtime}`);
  const source = `import { withHeadgate } from 'headgate/fetch';
import { NextResponse } from 'next/server';
import { gate } from './gate.js';

export const ${file} = withHeadgate(gate, () => NextResponse.next());
export const config = { matcher: '/', ${config} };
`;
  return {
    name: `next ${version}, ${file} on the ${runtime} runtime`,
    packages,
    /** Builds and starts the application with the package that is installed in `place`. Returns the report of the cases. */
    async run(place) {
      rmSync(folder, { recursive: true, force: true });
      cpSync(join(HERE, 'next/app'), folder, { recursive: true });
      cpSync(join(place, 'node_modules/headgate'), join(folder, 'node_modules/headgate'), { recursive: true });
      writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
      writeFileSync(join(folder, `${file}.js`), source);
      return runCases(packages, folder);
    },
  };
}

async function runCases(packages, cwd) {
  const next = join(packages, 'node_modules/next/dist/bin/next');
  const env = {
    HEADGATE_ROOT: resolve(HERE, '../..'),
    NODE_ENV: 'production',
    NEXT_TELEMETRY_DISABLED: '1',
    // Next.js would change the lock file of this repository.
    NEXT_IGNORE_INCORRECT_LOCKFILE: '1',
  };
  const report = { passed: [], failed: [] };
  const check = async (name, body) => {
    try {
      await body();
      report.passed.push(name);
    } catch (error) {
      report.failed.push({ name, error });
    }
  };
  const signal = AbortSignal.timeout(BUILD_MS);
  await check('it is built, without a warning about Node in the Edge runtime', async () => {
    const output = await run(process.execPath, [next, 'build'], { cwd, env, signal });
    doesNotMatch(output, /not supported in the Edge Runtime/);
  });
  if (report.passed.length === 0) return report;

  const stop = new AbortController();
  const server = start(process.execPath, [next, 'start', '--port', '0', '--hostname', '127.0.0.1'], {
    cwd,
    env,
    signal: AbortSignal.any([stop.signal, AbortSignal.timeout(SERVE_MS)]),
  });
  try {
    const [url] = await server.printed(/http:\/\/127\.0\.0\.1:\d+/);
    await server.printed(/Ready in/);
    for (const path of ['/', '/api/node', '/api/edge']) {
      await check(`limits of ${path}`, () => checkLimits(url + path));
    }
    for (const path of ['/api/node', '/api/edge']) {
      await check(`idempotency keys of ${path}`, () => checkKeys(url + path));
    }
  } catch (error) {
    report.failed.push({ name: 'it starts', error });
  } finally {
    stop.abort();
    await server.ended;
  }
  return report;
}

async function checkLimits(url) {
  const seen = [];
  for (let i = 0; i < 4; i++) {
    const { status, headers } = await fetch(url, { headers: { 'x-account': 'acc_1' } });
    seen.push([status, headers.get('x-ratelimit-remaining'), headers.has('retry-after')]);
  }
  deepStrictEqual(seen, [
    [200, '2', false],
    [200, '1', false],
    [200, '0', false],
    [429, '0', true],
  ]);
}

async function checkKeys(url) {
  const send = async (body) => {
    const headers = { 'x-account': 'acc_2', 'idempotency-key': 'key_1', 'content-type': 'text/plain' };
    const answer = await fetch(url, { method: 'POST', headers, body });
    return [answer.status, answer.headers.get('idempotency-replayed'), answer.ok ? await answer.json() : undefined];
  };
  deepStrictEqual(await send('a'.repeat(LONG)), [201, null, { length: LONG, run: 1 }]);
  deepStrictEqual(await send('a'.repeat(LONG)), [201, 'true', { length: LONG, run: 1 }]);
  deepStrictEqual(await send('b'), [409, null, undefined]);
}
