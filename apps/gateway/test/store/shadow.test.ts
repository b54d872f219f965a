/** Candidates on a real server: they change no answer and no key of the limits in force (S27). */

import { afterFile } from 'headgate-testbed/after-file';
import { patient, waitFor } from 'headgate-testbed/patience';
import { startUpstream } from 'headgate-testbed/upstream';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { connectForFile, isRedis, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const program = await connectForFile(server);
const upstream = await startUpstream();
/** Looks into Redis. */
const client = new Redis({ port: server.port, host: '127.0.0.1', lazyConnect: true });
afterFile(() => client.disconnect());
const CHATS = 'GET /api/v1/chats';
const config = {
  store: server.store(),
  limits: { default: { allMethods: ['3/1h'] } },
};
const shadow = { limits: { default: { allMethods: ['1/1h'] } } };
const start = (rest: object = {}) => startAdminGateway(upstream.url, { ...config, ...rest });
const chats = (gateway: AdminGateway) => gateway.ask('GET', '/api/v1/chats?account_id=acc_1');
const shown = async (gateway: AdminGateway, path = '/v1/shadow') => JSON.parse((await gateway.admin('GET', path)).text);
const put = (gateway: AdminGateway, json: object = shadow) => gateway.admin('PUT', '/v1/shadow', { json });
const isRunning = async (gateway: AdminGateway) => (await shown(gateway)).candidate !== null;

/** The records of the limits in force, without the times in them. */
async function liveRecords() {
  const keys = (await client.keys('headgate:{*')).sort();
  return Promise.all(keys.map(async (key) => [key, (await client.strlen(key)) > 0]));
}

it.runIf(isRedis)(
  'answers and keys are the same with and without a candidate, whose keys have a prefix of their own',
  async () => {
    const run = async (rest: object) => {
      await program.clear();
      const gateway = await start(rest);
      const seen: unknown[] = [];
      for (let i = 0; i < 5; i++) {
        const { status, headers, text } = await chats(gateway);
        const { date: _, 'x-request-id': __, 'x-ratelimit-reset': ___, 'retry-after': ____, ...fields } = headers;
        seen.push({ status, fields, text: text.replace(/"req_id":"[^"]*"/, '') });
      }
      const total = gateway.adminPort === 0 ? undefined : (await shown(gateway)).figures?.total;
      const records = await liveRecords();
      const candidates = (await client.keys('headgate-shadow:*')).length;
      await gateway.stop();
      return { seen, records, candidates, total };
    };
    const without = await run({});
    const withCandidate = await run({ shadow });
    expect(withCandidate.seen).toEqual(without.seen);
    expect(withCandidate.records).toEqual(without.records);
    expect([without.candidates, withCandidate.candidates]).toEqual([0, 1]);
    expect(withCandidate.total).toMatchObject({ none: 1, onlyCandidate: 2, failed: 0 });
  },
);

it('all gateways run the candidate of an operator within a second, count together, and end it', async () => {
  await program.clear();
  const [one, other] = (await Promise.all([start(), start()])) as [AdminGateway, AdminGateway];
  // Until the first reading after the start, a process does not ask for candidates.
  await new Promise((resolve) => setTimeout(resolve, 600));
  await put(one);
  const from = performance.now();
  await waitFor(async () => expect(await isRunning(other)).toBe(true), { interval: 20 });
  expect(performance.now() - from).toBeLessThan(patient(1_000));
  for (const gateway of [one, other]) await chats(gateway);
  await waitFor(async () =>
    expect((await shown(other)).figures).toMatchObject({ counters: 'shared', total: { onlyCandidate: 1, none: 0 } }),
  );
  const candidates = await Promise.all([one, other].map(async (gateway) => (await shown(gateway)).candidate));
  expect(candidates[0]).toEqual(candidates[1]);
  await waitFor(
    async () =>
      expect((await shown(one, '/v1/shadow?fleet=true')).fleet).toMatchObject({
        processes: { counted: 2, of: 2 },
        total: { none: 1, onlyCandidate: 1 },
      }),
    { interval: 100 },
  );
  const late = await start();
  await waitFor(async () => expect(await isRunning(late)).toBe(true), { interval: 50 });
  await other.admin('DELETE', '/v1/shadow');
  await waitFor(async () => expect(await isRunning(one)).toBe(false), { interval: 20 });
  expect((await shown(one)).durable).toBe(true);
  await Promise.all([one, other, late].map((gateway) => gateway.stop()));
});

it('a candidate that this version cannot read does not run, and the log says so', async () => {
  await program.clear();
  const gateway = await start();
  await program.board.writeCandidate({ id: 'x', text: '{"settings":{"limits":5}}' });
  await waitFor(() =>
    expect(gateway.lines().some(({ msg }) => String(msg).includes('cannot read the candidate'))).toBe(true),
  );
  expect(await isRunning(gateway)).toBe(false);
  expect((await chats(gateway)).status).toBe(200);
  await gateway.stop();
});

it('while the store does not answer, requests are decided as without a candidate, and PUT is 503', async () => {
  await program.clear();
  const gateway = await start({ shadow, storeDeadlineMs: 100 });
  await chats(gateway);
  server.freeze();
  const from = performance.now();
  expect((await chats(gateway)).status).toBe(200);
  expect(performance.now() - from).toBeLessThan(patient(1_500));
  await waitFor(async () => expect((await shown(gateway)).figures.total.failed).toBeGreaterThan(0));
  // It may be executed later, and then begins with new figures.
  expect((await put(gateway)).status).toBe(503);
  server.thaw();
  await gateway.stop();
});

it.runIf(isRedis)(
  'a decision costs one script call with a candidate in memory, and one more with one in Redis; polls are as before',
  async () => {
    const evalshas = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    const cost = async (rest: object) => {
      await program.clear();
      const gateway = await start({
        limits: { default: { allMethods: ['9000/1h'] } },
        adjustments: { refreshMs: 60_000 },
        ...rest,
      });
      await chats(gateway);
      await new Promise((resolve) => setTimeout(resolve, 100));
      const before = await evalshas();
      for (let i = 0; i < 20; i++) await chats(gateway);
      await new Promise((resolve) => setTimeout(resolve, 50));
      const calls = (await evalshas()) - before;
      await gateway.stop();
      return calls;
    };
    const wide = { limits: { default: { allMethods: ['9000/1h'] } } };
    expect(await cost({})).toBe(20);
    expect(await cost({ shadow: { ...wide, store: 'memory' } })).toBe(20);
    expect(await cost({ shadow: wide })).toBe(40);
  },
);

it(`the route of ${CHATS} is limited as before when a candidate is put that does not fit this config`, async () => {
  await program.clear();
  const gateway = await start({
    accounts: [{ id: 'acc_1', application: 'app_1', provider: 'mock', plan: 'pro' }],
    limits: { default: { allMethods: ['3/1h'] }, plans: { pro: { allMethods: ['2/1h'] } } },
  });
  const settings = { limits: { default: { allMethods: ['1/1h'] } }, sample: 1, store: 'same' };
  const text = JSON.stringify({ settings, by: 'ada', at: Date.now() });
  await new Promise((resolve) => setTimeout(resolve, 600));
  await program.board.writeCandidate({ id: 'y', text });
  await waitFor(async () => expect(await isRunning(gateway)).toBe(true), { interval: 50 });
  expect((await chats(gateway)).status).toBe(200);
  await waitFor(async () => expect((await shown(gateway)).figures.total).toMatchObject({ failed: 1, none: 0 }));
  await gateway.stop();
});

it('of two operators at two gateways, one candidate runs everywhere; if the store loses its data, it ends', async () => {
  await program.clear();
  const gateways = await Promise.all([start(), start()]);
  const samples = async () =>
    Promise.all(gateways.map(async (gateway) => (await shown(gateway)).candidate?.sample ?? null));
  await Promise.all(gateways.map((gateway, i) => put(gateway, { ...shadow, sample: (i + 1) / 10 })));
  await waitFor(
    async () => {
      const [one, other] = await samples();
      expect(one).not.toBe(null);
      expect(one).toBe(other);
    },
    { interval: 50 },
  );
  await program.clear();
  await waitFor(async () => expect(await samples()).toEqual([null, null]), { interval: 50 });
  for (const gateway of gateways) expect((await chats(gateway)).status).toBe(200);
  await Promise.all(gateways.map((gateway) => gateway.stop()));
});

it.runIf(isRedis)(
  'an idle gateway calls at most 3 scripts a second and sends at most 3 short commands, with a candidate as without',
  async () => {
    await program.clear();
    const gateway = await start({ shadow });
    await put(gateway);
    const calls = async (commands: string) => {
      const found = (await client.info('commandstats')).matchAll(
        new RegExp(`cmdstat_(?:${commands}):calls=(\\d+)`, 'g'),
      );
      return [...found].reduce((sum, [, n]) => sum + Number(n), 0);
    };
    // Each script that reads the adjustments calls HGET too.
    const count = async () => [await calls('evalsha|eval'), await calls('hget|hmget|set')] as const;
    await new Promise((resolve) => setTimeout(resolve, 300));
    const before = await count();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const [scripts, others] = await count();
    expect(scripts - before[0]).toBeLessThanOrEqual(6);
    expect(others - before[1] - (scripts - before[0])).toBeLessThanOrEqual(6);
    await gateway.stop();
  },
);
