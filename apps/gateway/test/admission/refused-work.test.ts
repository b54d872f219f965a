/** What an application's refused bodies may cost the process, through the whole gateway. */

import { answer, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const PATH = '/api/v1/emails';
const JSON_TYPE = { 'content-type': 'application/json' };
/** Some milliseconds of work. */
const LIST = JSON.stringify(Array.from({ length: 20_000 }, () => ({ a: 1 })));
const GOOD = `{"list":${LIST},"account_id":"acc_1"}`;
const BAD = `{"list":${LIST}}`;

async function start(perApplication: object, upstreamUrl?: string): Promise<InProcess> {
  const upstream = await startUpstream();
  upstream.behave(answer());
  return startInProcess({
    upstream: upstreamUrl ?? upstream.url,
    keys: [
      { token: TOKEN, application: 'app_1' },
      { token: 'another', application: 'app_2' },
    ],
    accounts: [
      { id: 'acc_1', application: 'app_1' },
      { id: 'acc_2', application: 'app_2' },
    ],
    routes: [{ route: `POST ${PATH}`, account: 'body.account_id', idempotent: true }, { route: 'GET /status' }],
    limits: { default: { allMethods: ['100/1h'] } },
    perApplication,
  });
}

it('an application whose refused bodies cost too much gets 429 before its next body is read', async () => {
  const { ask } = await start({ maxRefusedWorkMs: 1 });
  expect((await ask('POST', PATH, JSON_TYPE, { body: BAD })).status).toBe(422);
  const refused = await ask('POST', PATH, JSON_TYPE, { body: GOOD });
  expect(refused.status).toBe(429);
  expect(JSON.parse(refused.text)).toMatchObject({ type: 'api/too_many_requests' });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(50);
  expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
  expect(Object.keys(refused.headers).filter((name) => name.includes('ratelimit'))).toEqual([]);
  // What needs no body to be read goes on, and so do other applications.
  expect((await ask('GET', '/status')).status).toBe(200);
  const other = { ...JSON_TYPE, 'x-api-key': 'another' };
  expect((await ask('POST', PATH, other, { body: GOOD.replace('acc_1', 'acc_2') })).status).toBe(200);
});

it('requests that are forwarded cost nothing, however long their bodies are', async () => {
  const { ask } = await start({ maxRefusedWorkMs: 1 });
  for (let i = 0; i < 5; i++) {
    const key = { 'idempotency-key': `key-${i}` };
    expect((await ask('POST', PATH, { ...JSON_TYPE, ...key }, { body: GOOD })).status).toBe(200);
  }
});

it.each([
  ['a replay', GOOD, 200],
  ['another request with the key of the first', GOOD.replace('[', '[0,'), 409],
])('%s is not charged, so its body counts', async (_, body, status) => {
  const { ask } = await start({ maxRefusedWorkMs: 1 });
  const headers = { ...JSON_TYPE, 'idempotency-key': 'key-1' };
  expect((await ask('POST', PATH, headers, { body: GOOD })).status).toBe(200);
  expect((await ask('POST', PATH, headers, { body })).status).toBe(status);
  expect((await ask('POST', PATH, headers, { body })).status).toBe(429);
});

it('a request that the upstream cannot receive is refunded, so its body counts', async () => {
  const upstream = await startUpstream();
  await upstream.close();
  const { ask } = await start({ maxRefusedWorkMs: 1 }, upstream.url);
  expect((await ask('POST', PATH, JSON_TYPE, { body: GOOD })).status).toBe(503);
  expect((await ask('POST', PATH, JSON_TYPE, { body: GOOD })).status).toBe(429);
});
