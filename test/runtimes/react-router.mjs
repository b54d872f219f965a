import { deepStrictEqual, match } from 'node:assert/strict';
import { join } from 'node:path';
import { runApp, serveScript } from './app.mjs';

const HERE = join(import.meta.dirname, 'react-router');
const MODULES = join(HERE, 'node_modules');

const app = {
  source: join(HERE, 'app'),
  folder: join(HERE, '.run/app'),
  // Its build looks for both there, and would install isbot.
  files: { 'package.json': '{ "type": "module", "dependencies": { "@react-router/node": "*", "isbot": "*" } }' },
  build: [join(MODULES, '@react-router/dev/bin.js'), 'build'],
  serve: [
    '-e',
    serveScript(
      `(await import('@react-router/node')).createRequestListener({ build: await import('./build/server/index.js') })`,
    ),
  ],
  cases: {
    'limits of a loader': async (url) => {
      const statuses = [];
      const headers = { 'x-account': 'acc_loader' };
      for (let i = 0; i < 4; i++) statuses.push((await fetch(`${url}/resource`, { headers })).status);
      deepStrictEqual(statuses, [200, 200, 200, 429]);
    },
    'plain data of an action is an outcome': (url) => checkRetry(`${url}/resource`, 'plain', 200, /"run":\d+/),
    'plain data of an action with a page is an outcome': (url) => checkRetry(`${url}/page`, '', 200, /run \d+/),
    'data() is an outcome, with its status and fields': async (url) => {
      const [, second] = await checkRetry(`${url}/resource`, 'data', 202, /"run":\d+/);
      deepStrictEqual(second.headers.get('x-own'), 'a');
    },
    'data() that is thrown is not executed again': async (url) => {
      const [first, second] = await twice(`${url}/resource`, 'throw');
      deepStrictEqual([first.status, second.status], [422, 422]);
      deepStrictEqual(await second.text(), await first.text());
    },
    'a Response that is thrown is an outcome': async (url) => {
      const [, second] = await checkRetry(`${url}/resource`, 'response', 409, /thrown \d+/);
      deepStrictEqual(second.headers.get('x-own'), 'b');
    },
    'redirect() that is thrown is an outcome': async (url) => {
      const [first, second] = await twice(`${url}/resource`, 'redirect');
      deepStrictEqual([first.status, second.status], [302, 302]);
      deepStrictEqual(second.headers.get('location'), first.headers.get('location'));
    },
  },
};

export const REACT_ROUTER_APPS = [{ name: 'react-router 7', packages: HERE, run: (place) => runApp(app, place) }];

let keys = 0;

/** Sends a request twice with one key. */
async function twice(url, body) {
  const headers = { 'x-account': `acc_${++keys}`, 'idempotency-key': `key_${keys}`, 'content-type': 'text/plain' };
  const send = () => fetch(url, { method: 'POST', redirect: 'manual', body, headers });
  return [await send(), await send()];
}

async function checkRetry(url, body, status, text) {
  const both = await twice(url, body);
  const [first, second] = [await both[0].text(), await both[1].text()];
  deepStrictEqual([both[0].status, both[1].status, second], [status, status, first]);
  match(first, text);
  return both;
}
