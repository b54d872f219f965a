/** Large stored answers: one application neither slows the store of another, nor gets more than its share. */

import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectProblem, type Gateway, ratesOf, startGateway } from '../support/gateway.ts';
import {
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  MESSAGES,
  OTHER_TOKEN,
  post,
} from '../support/keyed.ts';

const LARGE = Buffer.alloc(200_000, 'x');
const CLIENTS = 20;
let redis: RedisServer;
let wire: TcpProxy;
let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  redis = await startRedis();
  wire = await startTcpProxy(redis.port);
  upstream = await startUpstream((seen, response, request) =>
    answer({ headers: {}, body: seen.headers['x-test-large'] === undefined ? '{"ok":true}' : LARGE })(
      seen,
      response,
      request,
    ),
  );
  gateway = await startGateway(
    keyedConfig(upstream.url, {
      store: `redis://127.0.0.1:${wire.port}/0`,
      storeDeadlineMs: 1_000,
      perApplication: { maxLargeBytes: 3 * LARGE.length },
      limits: { default: { allMethods: ['1000000/1h'] } },
    }),
  );
});
afterAll(async () => {
  await gateway.stop();
  await wire.close();
  await redis.stop();
});

const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text();
  return Number(new RegExp(`^headgate_${name} (.*)$`, 'm').exec(text)?.[1]);
};

it.each(['new answers', 'replays of one'])(
  "S17, I12: twenty clients of one application with large answers, %s: another application's requests are all decided by Redis",
  async (kind) => {
    const hostile = { token: OTHER_TOKEN, headers: { 'x-test-large': '1' } };
    const known = freshKey();
    const original = await post(gateway, known, hostile);
    expectOriginal(original);
    // The answers of twenty clients take longer than the deadline.
    wire.bytesPerSecond = 2 * 1_048_576;
    let isOver = false;
    let refused = 0;
    const attack = async (): Promise<void> => {
      while (!isOver) {
        const reply = await post(gateway, kind === 'new answers' ? freshKey() : known, hostile);
        if (reply.status === 200) continue;
        expectProblem(reply, 503, 'errors/service_unavailable');
        refused += 1;
      }
    };
    const attacks = Array.from({ length: CLIENTS }, attack);
    try {
      for (let i = 0; i < 15; i += 1) {
        const key = freshKey();
        const reply = await post(gateway, key, { path: MESSAGES });
        expectOriginal(reply);
        expect(ratesOf(reply).limit).toBe(1_000_000);
        expectReplay(await post(gateway, key, { path: MESSAGES }), reply);
      }
    } finally {
      isOver = true;
      wire.bytesPerSecond = Number.POSITIVE_INFINITY;
      await Promise.all(attacks);
    }
    expect(callsOf(upstream, known)).toHaveLength(1);
    expectReplay(await post(gateway, known, hostile), original);
    expect(await metric('redis_store_degraded_decisions_total')).toBe(0);
    expect(await metric('redis_claims_deadline_misses_total')).toBe(0);
    if (kind === 'new answers') {
      // I7: the clients got their answers, which were stored without their bodies.
      expect([refused, (await metric('redis_claims_large_dropped_total')) > 0]).toEqual([0, true]);
    } else expect(await metric('redis_claims_large_refused_total')).toBeGreaterThan(0);
  },
);
