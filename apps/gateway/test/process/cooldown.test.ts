/** S30 with four processes on one store: the answer of a provider pauses all of them, and then one request tries. */
import { eventually, openRaw, pause, rawRequest } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { configOf, expectProblem, startGateway, TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';
import { startStoreServer, storeServerForFile } from '../support/store-server.ts';

const PATH = '/api/v1/chats?account_id=acc_1';
const PAUSE_MS = 3_000;
/** How long the upstream takes for the request that tries. */
const PROBE_MS = 500;

it('a 429 with retry-after 3 pauses four gateways; then one request goes alone, and the rest when it was accepted', async () => {
  const server = await storeServerForFile();
  const upstream = await startUpstream();
  const config = configOf('', {
    upstream: { url: upstream.url, cooldown: true },
    store: server.store(),
    storeDeadlineMs: 10_000,
  });
  const gateways = await Promise.all(Array.from({ length: 4 }, () => startGateway(config)));
  const calls: number[] = [];
  let underWay = 0;
  let most = 0;
  let probeEndedAt = Number.POSITIVE_INFINITY;
  upstream.behave(answer({ status: 429, headers: { 'retry-after': String(PAUSE_MS / 1_000) } }));
  expectProblem(await (gateways[0] as (typeof gateways)[0]).ask('GET', PATH), 429, 'provider/too_many_requests');
  const pausedAt = performance.now();
  upstream.behave(async (_seen, response) => {
    calls.push(performance.now());
    underWay += 1;
    if (probeEndedAt === Number.POSITIVE_INFINITY) most = Math.max(most, underWay);
    await pause(PROBE_MS);
    underWay -= 1;
    probeEndedAt = Math.min(probeEndedAt, performance.now());
    response.end('ok');
  });
  const statuses = await Promise.all(
    gateways.flatMap((gateway) =>
      Array.from({ length: 3 }, async () => {
        const seen: number[] = [];
        // In the end every client of every gateway gets through.
        while (seen.at(-1) !== 200) {
          const { status } = await gateway.ask('GET', PATH);
          seen.push(status);
          await pause(100);
        }
        return seen;
      }),
    ),
  );
  // The store began to count before the client had its answer.
  expect((calls[0] as number) - pausedAt).toBeGreaterThan(PAUSE_MS - 500);
  expect(most).toBe(1);
  expect(calls.filter((at) => at < probeEndedAt)).toHaveLength(1);
  expect(statuses).toHaveLength(12);
  expect(statuses.flat().every((status) => status === 200 || status === 429)).toBe(true);
  await Promise.all(gateways.map((gateway) => gateway.stop()));
}, 60_000);

it('S30: a store that hangs delays the 429 by its deadline only; a client that leaves meanwhile leaves nothing behind', async () => {
  const server = await startStoreServer();
  const upstream = await startUpstream();
  const config = { upstream: { url: upstream.url, cooldown: true }, store: server.store(), storeDeadlineMs: 500 };
  const gateway = await startInProcess(configOf('', { ...config, admin: { host: '127.0.0.1', port: 0 } }));
  const running = async () => Number(/^headgate_requests_running (\d+)$/m.exec(await gateway.metrics())?.[1]);
  const hold = held(answer({ status: 429, headers: { 'retry-after': '60' }, body: 'slow down' }));
  upstream.behave(hold.behaviour);
  const waiting = gateway.ask('GET', PATH);
  const raw = await openRaw(gateway.port);
  raw.write(rawRequest('GET', '/api/v1/chats?account_id=acc_2', { 'x-api-key': TOKEN }));
  await eventually(() => upstream.seen.length === 2, 'both requests run');
  server.freeze();
  hold.release();
  raw.destroy();
  expectProblem(await waiting, 429, 'provider/too_many_requests');
  await eventually(async () => (await running()) === 0, 'nothing runs');
  expect(await gateway.stop()).toBe(0);
  server.thaw();
  await server.stop();
}, 60_000);
