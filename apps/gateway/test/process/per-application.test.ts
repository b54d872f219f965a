/** I13: what one application can take of the idempotency keys, and that the others do not notice. */

import { startUpstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectProblem, type Gateway, startGateway } from '../support/gateway.ts';
import { expectReplay, freshKey, keyedConfig, MESSAGES, OPEN, OTHER_TOKEN, post } from '../support/keyed.ts';
import { KIND, storeServerForFile } from '../support/store-server.ts';

const MAX_CLAIMS = 40;
const server = await storeServerForFile();
const upstream = await startUpstream();
beforeEach(() => upstream.reset());

const LIMITED = { path: MESSAGES };
const stores = [
  { name: 'memory', store: 'memory' },
  { name: KIND, store: server.store() },
];

async function start(store: unknown): Promise<Gateway> {
  const config = keyedConfig(upstream.url, {
    store,
    storeDeadlineMs: 5_000,
    perApplication: { maxClaims: MAX_CLAIMS },
    limits: { accounts: { acc_1: { routes: { 'POST /api/v1/messages': ['0/1h'] } } } },
  });
  return startGateway(config);
}

describe.each(stores)('the idempotency keys of one application, with the store in $name', ({ store }) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await start(store);
  });
  afterAll(() => gateway.stop());

  it('I6, I13: rejected requests leave room for every other request, of this application and of the others', async () => {
    for (let i = 0; i < 5 * MAX_CLAIMS; i++)
      expectProblem(await post(gateway, freshKey(), LIMITED), 422, 'api/cost_exceeds_limit');
    expect(upstream.seen).toHaveLength(0);
    const key = freshKey();
    const original = await post(gateway, key);
    expect(original.status).toBe(200);
    expectReplay(await post(gateway, key), original);
    for (let i = 0; i < 5; i++) expect((await post(gateway, freshKey(), { token: OTHER_TOKEN })).status).toBe(200);
  });

  it('I13: an application with too many stored keys gets 429 for new ones; its known keys and the others work', async () => {
    const key = freshKey();
    const original = await post(gateway, key);
    let refused = original;
    for (let i = 0; refused.status === 200 && i < 2 * MAX_CLAIMS; i++) refused = await post(gateway, freshKey());
    const before = upstream.seen.length;
    const { detail } = expectProblem(refused, 429, 'api/too_many_requests');
    expect(detail).toContain('too many idempotency keys');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect(refused.headers['x-ratelimit-limit']).toBeUndefined();
    expect(upstream.seen).toHaveLength(before);
    expectReplay(await post(gateway, key), original);
    expect((await post(gateway, freshKey(), { path: OPEN, token: OTHER_TOKEN })).status).toBe(200);
  });
});
