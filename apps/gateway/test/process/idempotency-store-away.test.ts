/**
 * I12: the store killed or frozen before, during and after the operation. At most one upstream call per key, and every
 * answer in time.
 */

import { eventually, pause } from 'headgate-testbed/raw-http';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import { answer, held, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectProblem, type Gateway, NO_RATES, ratesOf, startGateway } from '../support/gateway.ts';
import {
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  type Mail,
  MESSAGES,
  post,
  reached,
  settled,
} from '../support/keyed.ts';
import { type StoreServer, startStoreServer } from '../support/store-server.ts';

const DEADLINE_MS = 300;
/** Extra time, because the machine is busy with other tests. */
const SLACK_MS = 2_500;
const LEASE_MS = 1_000;
const AGAIN = '/api/v1/again';
const BYPASS = '/api/v1/bypass';
let server: StoreServer;
let wire: TcpProxy;
let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  // The data survives a kill. If the store could lose a command, one more execution per loss would be right.
  server = await startStoreServer();
  wire = await startTcpProxy(server.port);
  upstream = await startUpstream();
  gateway = await startGateway(
    keyedConfig(upstream.url, {
      store: server.store(wire.port),
      storeDeadlineMs: DEADLINE_MS,
      idempotency: { leaseMs: LEASE_MS },
    }),
  );
});
afterAll(async () => {
  await gateway.stop();
  await wire.close();
  await server.stop();
});
beforeEach(async () => {
  upstream.seen.length = 0;
  upstream.behave(answer());
  await settled(gateway, freshKey());
});

/** Two ways to take the store down, and back up. */
const outages = {
  frozen: { begin: () => server.freeze(), end: () => server.thaw() },
  killed: { begin: () => server.kill(), end: () => server.restart() },
};
let away: keyof typeof outages | undefined;
const begin = async (outage: keyof typeof outages) => {
  away = outage;
  await outages[outage].begin();
};
const end = async () => {
  if (away !== undefined) await outages[away].end();
  away = undefined;
};
afterEach(end);

async function bounded<T>(work: Promise<T>): Promise<T> {
  const began = performance.now();
  const result = await work;
  expect(performance.now() - began).toBeLessThan(2 * DEADLINE_MS + SLACK_MS);
  return result;
}

const ask = (key: string, mail: Mail = {}) => bounded(post(gateway, key, mail));

describe.each(['frozen', 'killed'] as const)('Redis %s', (outage) => {
  it('before the operation: 503 errors/service_unavailable, nothing sent; the same key works when it is back', async () => {
    const key = freshKey();
    await begin(outage);
    for (let i = 0; i < 4; i += 1) {
      const refused = await ask(key, { path: MESSAGES });
      expectProblem(refused, 503, 'errors/service_unavailable');
      expectOriginal(refused, 503);
      expect(ratesOf(refused)).toEqual(NO_RATES);
    }
    expect(callsOf(upstream, key)).toHaveLength(0);
    await end();
    const original = await settled(gateway, key, { path: MESSAGES });
    expectOriginal(original);
    expectReplay(await settled(gateway, key, { path: MESSAGES }), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('during the operation: the client gets its answer, and a retry gets it too, when it is back', async () => {
    const key = freshKey();
    const hold = held(answer({ status: 201, body: 'done' }));
    upstream.behave(hold.behaviour);
    const asked = post(gateway, key);
    await reached(upstream, key);
    await begin(outage);
    hold.release();
    const original = await bounded(asked);
    expectOriginal(original, 201);
    expectProblem(await ask(key), 503, 'errors/service_unavailable');
    await end();
    expectReplay(await settled(gateway, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('during the operation, reexecute: 503, because another outcome may win; a retry gets the winner', async () => {
    const key = freshKey();
    const hold = held(answer({ status: 201, body: 'done' }));
    upstream.behave(hold.behaviour);
    const asked = post(gateway, key, { path: AGAIN });
    await reached(upstream, key);
    await begin(outage);
    upstream.behave(answer({ status: 201, body: 'done' }));
    hold.release();
    expectProblem(await bounded(asked), 503, 'errors/service_unavailable');
    await end();
    const outcome = await settled(gateway, key, { path: AGAIN });
    expect(outcome).toMatchObject({ status: 201, text: 'done' });
    expectReplay(await settled(gateway, key, { path: AGAIN }), outcome);
  });

  it('back again during the operation: nothing is lost', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const asked = post(gateway, key);
    await reached(upstream, key);
    await begin(outage);
    // Longer than the lease, which could not be renewed.
    await pause(1.2 * LEASE_MS);
    await end();
    const duplicate = settled(gateway, key);
    await pause(100);
    hold.release();
    const original = await asked;
    expectOriginal(original);
    expectReplay(await duplicate, original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('after the operation: its replay is 503 until it is back; nothing is sent again', async () => {
    const key = freshKey();
    const original = await settled(gateway, key);
    await begin(outage);
    expectProblem(await ask(key), 503, 'errors/service_unavailable');
    await end();
    expectReplay(await settled(gateway, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('while a duplicate waits: it gets 503 in time', async () => {
    const key = freshKey();
    const hold = held();
    upstream.behave(hold.behaviour);
    const asked = post(gateway, key);
    await reached(upstream, key);
    const duplicate = post(gateway, key);
    await begin(outage);
    expectProblem(await bounded(duplicate), 503, 'errors/service_unavailable');
    hold.release();
    expectOriginal(await bounded(asked));
    await end();
    expect((await settled(gateway, key)).headers['idempotency-replayed']).toBe('true');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('bypass: executed without protection, and marked so; protected again when Redis is back', async () => {
    await begin(outage);
    const reply = await ask(freshKey(), { path: BYPASS });
    expectOriginal(reply);
    expect(reply.headers['idempotency-status']).toBe('bypassed');
    await end();
    const key = await eventually(async () => {
      const fresh = freshKey();
      const { headers } = await post(gateway, fresh, { path: BYPASS });
      return headers['idempotency-status'] === undefined && fresh;
    }, 'an answer that is not bypassed');
    expect((await post(gateway, key, { path: BYPASS })).headers['idempotency-replayed']).toBe('true');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a request without a key is still served', async () => {
    await begin(outage);
    const reply = await bounded(gateway.ask('POST', MESSAGES, { 'content-type': 'application/json' }, { body: '{}' }));
    expectOriginal(reply);
    expect(reply.headers['idempotency-status']).toBeUndefined();
  });
});

describe('a bad line to Redis', () => {
  it.each([0, 1, 2, 3, 4])(
    'the answer after %i others is lost: one call and one outcome in the end',
    async (passing) => {
      const key = freshKey();
      wire.passAnswers = passing;
      wire.cutAfterBytes = 0;
      const first = await ask(key, { path: MESSAGES });
      expect([200, 503]).toContain(first.status);
      wire.cutAfterBytes = undefined;
      const second = await settled(gateway, key, { path: MESSAGES });
      expect(second.status).toBe(200);
      if (first.status === 200) expectReplay(second, first);
      expect(callsOf(upstream, key)).toHaveLength(1);
    },
  );

  it('every command arrives too late: 503, and late commands do no harm', async () => {
    const key = freshKey();
    wire.delayRequestsMs = 1.3 * DEADLINE_MS;
    try {
      expectProblem(await ask(key), 503, 'errors/service_unavailable');
    } finally {
      wire.delayRequestsMs = 0;
    }
    expect(callsOf(upstream, key)).toHaveLength(0);
    expectOriginal(await settled(gateway, key));
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});
