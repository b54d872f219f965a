import { deepStrictEqual, doesNotMatch } from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { runApp } from './app.mjs';

const HERE = import.meta.dirname;
/** Longer than what headgate works on in one turn of the event loop. */
const LONG = 100_000;
const ENV = {
  HEADGATE_ROOT: resolve(HERE, '../..'),
  NEXT_TELEMETRY_DISABLED: '1',
  // Next.js would change the lock file of this repository.
  NEXT_IGNORE_INCORRECT_LOCKFILE: '1',
};

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
  const next = join(packages, 'node_modules/next/dist/bin/next');
  const middleware = `import { withHeadgate } from 'headgate/fetch';
import { NextResponse } from 'next/server';
import { gate } from './gate.js';

export const ${file} = withHeadgate(gate, () => NextResponse.next());
export const config = { matcher: '/', ${config} };
`;
  const app = {
    source: join(HERE, 'next/app'),
    folder: join(packages, '.run', `${file}-${runtime}`),
    files: { [`${file}.js`]: middleware },
    env: ENV,
    build: [next, 'build'],
    serve: [next, 'start', '--port', '0', '--hostname', '127.0.0.1'],
    checkBuild: (output) => doesNotMatch(output, /not supported in the Edge Runtime/),
    cases: Object.fromEntries([
      ...['/', '/api/node', '/api/edge'].map((path) => [`limits of ${path}`, (url) => checkLimits(url + path)]),
      ...['/api/node', '/api/edge'].map((path) => [`idempotency keys of ${path}`, (url) => checkKeys(url + path)]),
      [`${file}: a key has no outcome there`, checkKeyInMiddleware],
      ['redirect() and its replay have one status', (url) => checkRedirect(`${url}/api/redirect`)],
    ]),
  };
  return { name: `next ${version}, ${file} on the ${runtime} runtime`, packages, run: (place) => runApp(app, place) };
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

async function checkKeyInMiddleware(url) {
  for (let i = 0; i < 2; i++) {
    const headers = { 'x-account': 'acc_3', 'idempotency-key': 'key_1', 'content-type': 'text/plain' };
    const answer = await fetch(url, { method: 'POST', headers, body: 'a' });
    deepStrictEqual([answer.status, answer.headers.get('idempotency-replayed')], [500, null]);
  }
}

async function checkRedirect(url) {
  for (const [type, status] of [
    ['application/x-www-form-urlencoded', 303],
    ['text/plain', 307],
  ]) {
    for (const replayed of [null, 'true']) {
      const headers = { 'x-account': 'acc_4', 'idempotency-key': `key_${status}`, 'content-type': type };
      const answer = await fetch(url, { method: 'POST', headers, body: 'a=1', redirect: 'manual' });
      const { location } = Object.fromEntries(answer.headers);
      deepStrictEqual(
        [answer.status, new URL(location, url).pathname, answer.headers.get('idempotency-replayed')],
        [status, '/done', replayed],
      );
    }
  }
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
