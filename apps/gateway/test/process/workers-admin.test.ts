/** The Admin API and the console with `workers`: the primary answers for all of them, and says which do not answer. */
import { writeFileSync } from 'node:fs';
import { eventually, openRaw, type Reply, rawRequest, send } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { ADMIN, type AdminAsk, askAdmin, TOKENS } from '../support/admin.ts';
import { configOf, freePort, serve, writeConfig } from '../support/gateway.ts';
import { storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const upstream = await startUpstream();

it('covers both workers, names one that does not answer, survives the end of one, and follows a reload', async () => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const listeners = { listen: { host: '127.0.0.1', port }, admin: { ...ADMIN, port: adminPort } };
  const config = {
    ...configOf(upstream.url, { ...listeners, store: server.store(), storeDeadlineMs: 10_000, workers: 2 }),
    log: { account: true },
  };
  const withTokens = (tokens: readonly object[]) => ({ ...config, admin: { ...listeners.admin, tokens } });
  const file = writeConfig(withTokens([]));
  const gateway = await serve(['--config', file], port, adminPort);
  const workers = () =>
    gateway.log().filter(({ msg }) => msg === 'worker listening') as unknown as { worker: number; pid: number }[];
  const [first, second] = await eventually(
    () => (gateway.log().some(({ msg }) => msg === 'listening') ? workers() : undefined),
    'all workers',
  );
  if (first === undefined || second === undefined) throw new Error('two workers were expected');
  const admin = (method: string, path: string, ask?: AdminAsk) => askAdmin(adminPort, method, path, ask);
  const read = async (path: string, ask?: AdminAsk) => {
    const reply = await admin('GET', path, ask);
    expect(reply.status, reply.text).toBe(200);
    return JSON.parse(reply.text);
  };
  /** Each request has a connection of its own, so the workers take them in turn. */
  const chats = async (account: string, times: number): Promise<Reply[]> => {
    const replies: Reply[] = [];
    for (let i = 0; i < times; i += 1) replies.push(await gateway.ask('GET', `/api/v1/chats?account_id=${account}`));
    return replies;
  };
  const both = { counted: 2, of: 2, missing: [] };
  const reload = async (next: object, count: number) => {
    writeFileSync(file, JSON.stringify(next));
    gateway.signal('SIGHUP');
    await eventually(() => gateway.log().filter(({ msg }) => msg === 'config reloaded').length === count, 'the reload');
  };

  // Without tokens there is no Admin API. The first ones open it.
  expect((await admin('GET', '/v1/status')).status).toBe(404);
  await reload(config, 1);

  // The console is there, and asks for a token.
  expect((await send(adminPort, { path: '/' })).text).toContain('<title>');
  expect((await admin('GET', '/v1/status', { as: undefined })).status).toBe(401);

  // Figures are those of both.
  const replies = await chats('acc_1', 8);
  expect(await read('/v1/top?by=accepted')).toMatchObject({
    accounts: [{ account: 'acc_1', count: 8, missing: 0 }],
    workers: both,
  });
  for (const { headers } of replies.slice(0, 2)) {
    const id = headers['x-request-id'];
    expect(await read(`/v1/decisions?req_id=${id}`)).toMatchObject({ req_id: id, account: 'acc_1' });
  }
  expect(await read('/v1/windows?account=acc_1')).toMatchObject({ perMinute: { accepted: 8 }, workers: both });
  const counted = async () => {
    const { seconds } = await read('/v1/series?seconds=60');
    return seconds.reduce((sum: number, { accepted }: { accepted: number }) => sum + accepted, 0) === 8;
  };
  await eventually(counted, 'the second in which the requests came');
  expect(await read('/v1/status')).toMatchObject({ state: 'serving', store: { health: 'ok' }, workers: both });
  const { instances } = await read('/v1/instances');
  const pids = instances.map(({ name }: { name: string }) => Number(name.split(':').at(-2)));
  expect(pids).toEqual(expect.arrayContaining([gateway.process.pid, first.pid, second.pid]));
  const asked = admin('PUT', '/v1/limit?account=acc_2&dryRun=true', { json: { windows: ['1/1m'] } });
  expect(JSON.parse((await asked).text)).toMatchObject({ accounts: { affected: 0 }, workers: both });

  // Events come from both; the first client also gets what happened before it, if it asks for it.
  const client = await openRaw(adminPort);
  client.write(
    rawRequest('GET', '/v1/events?types=decision&after=0', {
      host: 'localhost',
      authorization: `Bearer ${TOKENS.viewer}`,
    }),
  );
  const events = () => client.received().split('event: decision').length - 1;
  await eventually(() => events() === 8, 'the events before');
  await chats('acc_3', 4);
  await eventually(() => events() === 12, 'the events of both workers');
  const ids = [...client.received().matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  expect(ids).toEqual([...ids].sort((a, b) => a - b));
  client.destroy();

  // A change holds in every process once it is applied; a candidate runs in every worker.
  const adjusted = await admin('PUT', '/v1/limit?account=acc_4&wait=applied', {
    json: { windows: ['1/1h'], confirm: true },
  });
  expect(JSON.parse(adjusted.text)).toMatchObject({ effective: ['1/1h'], applied: { missing: [] } });
  expect((await chats('acc_4', 4)).map(({ status }) => status)).toEqual([200, 429, 429, 429]);
  const candidate = { limits: { default: { allMethods: ['1/1h'] } }, store: 'same', sample: 1 };
  expect((await admin('PUT', '/v1/shadow', { json: candidate })).status).toBe(200);
  const runs = async () => {
    await chats('acc_5', 2);
    const { total } = (await read('/v1/shadow')).figures;
    return total.none + total.onlyCandidate >= 2;
  };
  await eventually(runs, 'the candidate in the workers');
  expect((await read('/v1/shadow')).figures.workers).toEqual(both);

  // Load balancers ask any worker.
  const ready = async () => {
    const answers = [0, 1].map(async () => (await send(port, { path: '/readyz' })).status);
    return Promise.all([...answers, send(adminPort, { path: '/readyz' }).then(({ status }) => status)]);
  };
  expect(JSON.parse((await admin('POST', '/v1/drain', { json: {} })).text)).toEqual({
    state: 'draining',
    workers: both,
  });
  expect(await ready()).toEqual([503, 503, 503]);
  expect((await admin('POST', '/v1/undrain', { json: {} })).status).toBe(200);
  expect(await ready()).toEqual([200, 200, 200]);

  // A worker that does not answer is named, and delays only the first answer.
  process.kill(second.pid, 'SIGSTOP');
  const partial = { counted: 1, of: 2, missing: [second.worker] };
  expect((await read('/v1/top?by=accepted')).workers).toEqual(partial);
  expect((await read('/v1/status')).workers).toEqual(partial);
  expect((await read('/v1/limits')).limits.length).toBeGreaterThan(0);
  process.kill(second.pid, 'SIGCONT');
  await eventually(async () => (await read('/v1/status')).workers.counted === 2, 'the answer of the worker');

  // One that ends is replaced, and takes its figures with it. Its successor obeys what operators have said.
  expect((await admin('POST', '/v1/drain', { json: {} })).status).toBe(200);
  process.kill(first.pid, 'SIGKILL');
  await eventually(() => workers().length === 3, 'the replacement');
  await eventually(async () => (await ready()).every((status) => status === 503), 'the drained successor');
  expect(await read('/v1/status')).toMatchObject({ state: 'draining', workers: both });
  expect((await admin('POST', '/v1/undrain', { json: {} })).status).toBe(200);

  // A reload applies to the next request.
  const token = 'another-admin-token-0123';
  await reload(withTokens([{ name: 'new', role: 'viewer', token }]), 2);
  expect((await admin('GET', '/v1/status')).status).toBe(401);
  const renewed = await read('/v1/status', { as: undefined, headers: { authorization: `Bearer ${token}` } });
  expect(renewed).toMatchObject({ caller: { name: 'new', role: 'viewer' }, workers: both });
  expect((await gateway.stop()).code).toBe(0);
  expect(
    gateway.log().filter(({ level, msg }) => Number(level) >= 50 && msg !== 'worker ended: another takes its place'),
  ).toEqual([]);
});
