/** What apps/gateway/docs/production.md says about orphans: an operator decides about one that a killed gateway has left in Redis. */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { Redis } from 'ioredis';
import { afterAll, expect, it } from 'vitest';
import { startAdminGateway } from '../support/admin.ts';
import { ROOT } from '../support/deploy-files.ts';
import { sharedStoreForFile } from '../support/for-file.ts';
import { expectProblem } from '../support/gateway.ts';
import { callsOf, keyedConfig, post, reached } from '../support/keyed.ts';

/** The sample of the page. It is plain JavaScript too. */
const [, sample = ''] =
  /^## Orphans$.*?^```ts\n(.*?)^```/ms.exec(readFileSync(join(ROOT, 'apps/gateway/docs/production.md'), 'utf8')) ?? [];
/** Inside the repository, so that `headgate/…` is the built package. */
const FILE = join(import.meta.dirname, '.orphan.mjs');

const { store, upstream, survivor, start } = await sharedStoreForFile(1_000);
const url = String(store);
afterAll(() => rmSync(FILE, { force: true }));

/** Sends a request with this key through a gateway that is killed while the request runs. */
async function leaveOrphan(key: string): Promise<void> {
  const owner = await start();
  upstream.behave(held().behaviour);
  post(owner, key).catch(() => {});
  await reached(upstream, key);
  owner.signal('SIGKILL');
  await owner.exited;
  upstream.behave(answer({ body: 'executed again' }));
  // Until the lease is over, a retry waits.
  await eventually(async () => (await post(survivor, key)).headers['retry-after'] === undefined, 'the orphan', 10_000);
  expectProblem(await post(survivor, key), 409, 'errors/conflict');
}

/** Runs the sample for this key. Returns what it prints. */
function decide(key: string, wasExecuted: boolean): string {
  writeFileSync(FILE, sample.replace("'order-7'", `'${key}'`).replace('true;', `${wasExecuted};`));
  const env = { ...process.env, REDIS_URL: url };
  return execFileSync(process.execPath, [FILE], { encoding: 'utf8', env });
}

it('the request was executed: its retries get the response that the operator has stored', async () => {
  await leaveOrphan('executed');
  expect(decide('executed', true)).toBe('completed\n');
  const retry = await post(survivor, 'executed');
  expect(retry).toMatchObject({ status: 201, text: '{"id":"msg_7"}' });
  expect(retry.headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-replayed': 'true' });
  expect(callsOf(upstream, 'executed')).toHaveLength(1);
});

it('an operator finds it without its key and without a retry, by a scan that changes nothing, and completes it', async () => {
  const key = 'nobody-knows-it';
  const owner = await start();
  upstream.behave(held().behaviour);
  post(owner, key).catch(() => {});
  await reached(upstream, key);
  owner.signal('SIGKILL');
  await owner.exited;
  upstream.behave(answer({ body: 'executed again' }));
  const gateway = await startAdminGateway(upstream.url, keyedConfig(upstream.url, { store }));
  try {
    const scan = async (state: string) => {
      const reply = await gateway.admin('GET', `/v1/claims/scan?state=${state}&limit=500`, { as: 'operator' });
      return JSON.parse(reply.text) as { claims: { application: string; key: string }[]; next: string | null };
    };
    const redis = new Redis(url);
    const record = () => redis.hgetall(`headgate:claim:{app_1:${key}}`);
    const before = await record();
    const found = await eventually(
      async () => (await scan('orphan')).claims.find((each) => each.key === key),
      'it',
      5_000,
    );
    expect(found).toMatchObject({ application: 'app_1', state: 'orphan', dispatched: true, leaseMs: 0, status: null });
    expect((await scan('in_progress')).claims).not.toContainEqual(expect.objectContaining({ key }));
    expect(await record()).toEqual(before);
    redis.disconnect();
    const json = { application: 'app_1', key, answer: { status: 201, body: 'found at the provider' } };
    expect((await gateway.admin('POST', '/v1/claims/complete', { as: 'operator', json })).status).toBe(200);
    expect(await post(survivor, key)).toMatchObject({ status: 201, text: 'found at the provider' });
    expect((await scan('completed')).claims).toContainEqual(expect.objectContaining({ key, status: '201' }));
    expect(callsOf(upstream, key)).toHaveLength(1);
  } finally {
    await gateway.stop();
  }
});

it('the request was not executed: the next retry is', async () => {
  await leaveOrphan('lost');
  expect(decide('lost', false)).toBe('released\n');
  expect(await post(survivor, 'lost')).toMatchObject({ status: 200, text: 'executed again' });
});

it.each([true, false])('a request that still runs is left alone (executed: %s)', async (wasExecuted) => {
  const key = `running-${wasExecuted}`;
  const hold = held(answer({ body: 'its own response' }));
  upstream.behave(hold.behaviour);
  const original = post(survivor, key);
  await reached(upstream, key);
  expect(decide(key, wasExecuted)).toMatch(/^not an orphan: in_progress \d+\n$/);
  hold.release();
  expect(await original).toMatchObject({ status: 200, text: 'its own response' });
});

it('a key that Redis does not have is not an orphan', () => {
  expect(decide('unknown', true)).toBe('not an orphan: undefined undefined\n');
});
