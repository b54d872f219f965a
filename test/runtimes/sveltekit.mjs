import { deepStrictEqual, ok } from 'node:assert/strict';
import { join } from 'node:path';
import { runApp, serveScript } from './app.mjs';

const HERE = join(import.meta.dirname, 'sveltekit');

const app = {
  source: join(HERE, 'app'),
  folder: join(HERE, '.run/app'),
  build: [join(HERE, 'node_modules/vite/bin/vite.js'), 'build'],
  serve: ['-e', serveScript(`(await import('./build/handler.js')).handler`)],
  cases: {
    'limits in the hook': async (url) => {
      const statuses = [];
      for (let i = 0; i < 4; i++) statuses.push((await send(`${url}/hook`, { method: 'GET' })).status);
      deepStrictEqual(statuses, [200, 200, 200, 429]);
    },
    'an endpoint is executed once': (url) => checkRetry(`${url}/endpoint`, 'json', 201, /"run":\d+/),
    'error() is an outcome': (url) => checkRetry(`${url}/endpoint`, 'error', 422, /wrong \d+/),
    'redirect() is an outcome': async (url) => {
      const [first, second] = await twice(`${url}/endpoint`, { body: 'redirect' });
      deepStrictEqual([first.status, second.status], [303, 303]);
      deepStrictEqual(second.headers.get('location'), first.headers.get('location'));
      deepStrictEqual(second.headers.get('idempotency-replayed'), 'true');
    },
    'the data of a form action is an outcome, behind the hook': (url) =>
      checkForm(`${url}/form`, 'to=ann', /"type":"success"/),
    'fail() of a form action is an outcome, behind the hook': (url) =>
      checkForm(`${url}/form`, 'from=ann', /"type":"failure","status":422/),
  },
};

export const SVELTEKIT_APPS = [{ name: 'sveltekit 2', packages: HERE, run: (place) => runApp(app, place) }];

let keys = 0;

/** Sends a request twice with one key. */
async function twice(url, init) {
  const key = `key_${++keys}`;
  return [await send(url, init, key), await send(url, init, key)];
}

function send(url, { headers, ...init }, key) {
  const fields = { 'x-account': `acc_${keys}`, ...(key === undefined ? {} : { 'idempotency-key': key }), ...headers };
  return fetch(url, { method: 'POST', redirect: 'manual', ...init, headers: fields });
}

/** Sends a form as SvelteKit's own client does: the answer is JSON, with status 200. */
function checkForm(url, body, text) {
  return checkRetry(url, body, 200, text, 'application/x-www-form-urlencoded');
}

async function checkRetry(url, body, status, text, type = 'text/plain') {
  const [first, second] = await twice(url, { body, headers: { accept: 'application/json', 'content-type': type } });
  const texts = [await first.text(), await second.text()];
  deepStrictEqual([first.status, second.status, texts[1]], [status, status, texts[0]]);
  ok(text.test(texts[0]), texts[0]);
  deepStrictEqual(second.headers.get('idempotency-replayed'), 'true');
}
