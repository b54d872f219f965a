/** The built process with two workers decides for others: each worker answers, and all are one to their callers. */
import { Agent } from 'node:http';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { eventually, send } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import { expect, it } from 'vitest';
import { configOf, freePort, startGateway, TOKEN } from '../support/gateway.ts';

const DEPS = join(dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json')), 'deps');

it('claims, limits and calls of Envoy work through any worker', async () => {
  const redis = await startRedis();
  const [port, grpcPort] = [await freePort(), await freePort()];
  const gateway = await startGateway(
    configOf('http://127.0.0.1:1', {
      workers: 2,
      store: `redis://127.0.0.1:${redis.port}/0`,
      decisions: { port },
      routes: [
        { route: 'POST /once', account: 'key', idempotent: { waitMs: 0 } },
        { route: 'GET /counted', account: 'header.x-account' },
      ],
      limits: { default: { allMethods: ['6/1h'] } },
      rateLimitService: {
        port: grpcPort,
        domains: { api: [{ entries: [{ key: 'account' }], route: 'GET /counted', account: '{account}' }] },
      },
    }),
  );
  // A connection per request, so that both workers get some.
  const agent = new Agent({ keepAlive: false });
  const ask = async (path: string, json: object) => {
    const headers = { 'x-api-key': TOKEN, 'content-type': 'application/json' };
    const reply = await send(port, { method: 'POST', path, headers, body: JSON.stringify(json), agent });
    return { status: reply.status, ...JSON.parse(reply.text) };
  };
  // From then on they take turns.
  const workers = () => new Set(gateway.log().flatMap(({ door, worker }) => (door === 'json' ? [worker] : [])));
  await eventually(async () => {
    await ask('/v1/decisions', { route: 'GET /counted', account: 'acc_0' });
    return workers().size === 2;
  }, 'an answer of each worker');
  for (const key of ['a', 'b', 'c']) {
    const request = { route: 'POST /once', idempotency: { key, request: key } };
    const { claim } = await ask('/v1/decisions', request);
    expect(await ask('/v1/decisions', request)).toMatchObject({ status: 409 });
    const response = { status: 200, body: key };
    expect(await ask('/v1/claims/complete', { claim, response })).toMatchObject({ outcome: 'completed' });
    expect(await ask('/v1/decisions', request)).toMatchObject({ outcome: 'replayed', response: { body: key } });
  }
  const includeDirs = ['envoy-api', 'googleapis', 'protoc-gen-validate', 'xds'].map((folder) => join(DEPS, folder));
  const published = loadSync('envoy/service/ratelimit/v3/rls.proto', { includeDirs, enums: String });
  // biome-ignore lint/suspicious/noExplicitAny: the definition is made at run time
  const { RateLimitService } = (loadPackageDefinition(published) as any).envoy.service.ratelimit.v3;
  const codes: string[] = [];
  for (let i = 0; i < 8; i += 1) {
    const client = new RateLimitService(`127.0.0.1:${grpcPort}`, credentials.createInsecure());
    const descriptors = [{ entries: [{ key: 'account', value: 'acc_1' }] }];
    codes.push(
      await new Promise((resolve, reject) =>
        client.ShouldRateLimit(
          { domain: 'api', descriptors },
          (error: Error | null, answer: { overallCode: string }) =>
            error === null ? resolve(answer.overallCode) : reject(error),
        ),
      ),
    );
    client.close();
  }
  expect(codes).toEqual([...Array(6).fill('OK'), 'OVER_LIMIT', 'OVER_LIMIT']);
  expect(gateway.log().map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(['decisions listening', 'rate limit service listening']),
  );
  expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  await redis.stop();
});
