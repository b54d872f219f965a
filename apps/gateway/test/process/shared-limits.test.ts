/** Gateways and a library process obey the same adjustments of limits. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFileAdjustments } from 'headgate/file';
import { createRedisAdjustments } from 'headgate/redis';
import { createSharedLimits, type SharedLimits } from 'headgate/shared-limits';
import { eventually } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import { startUpstream } from 'headgate-testbed/upstream';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, inject, it } from 'vitest';
import {
  type Config,
  configOf,
  type Gateway,
  ratesOf,
  runHeadgate,
  scratchFolder,
  startGateway,
  writeConfig,
} from '../support/gateway.ts';
import { connectForFile, isRedis, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const upstream = await startUpstream();
const program = await connectForFile(server);
const opened: SharedLimits[] = [];
afterAll(() => Promise.all(opened.map((limits) => limits.close())));

const LIMITS = { default: { allMethods: ['1000/1h'] } };
const config = (rest: Config = {}): Config =>
  configOf(upstream.url, { store: server.store(), limits: LIMITS, ...rest });
const limitOf = async (gateway: Gateway, account = 'acc_1') =>
  Number(ratesOf(await gateway.ask('GET', `/api/v1/chats?account_id=${account}`)).limit);
const scrape = async ({ adminPort }: Gateway, metric: string) =>
  new RegExp(`^headgate_limits_${metric} (\\S+)$`, 'm').exec(
    await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(),
  )?.[1];

/** Whether each of them obeys this version. */
const haveVersion = async (gateways: readonly Gateway[], version: number): Promise<boolean> =>
  (await Promise.all(gateways.map((each) => scrape(each, 'version')))).every((each) => each === String(version));

/** An embedded library, as in another program. */
async function startLibrary(): Promise<SharedLimits> {
  const limits = createSharedLimits({ base: LIMITS, adjustments: program.adjustments, logger: false });
  opened.push(limits);
  await limits.ready();
  return limits;
}

describe('two gateways and a library on one store', () => {
  it('obey a change; counters stay, and a reset gives back the config', async () => {
    const library = await startLibrary();
    await library.put({ account: 'acc_9' }, ['900/1h'], { by: 'joe' });
    const [one, other] = await Promise.all([startGateway(config()), startGateway(config())]);
    expect(await Promise.all([one, other].map((gateway) => limitOf(gateway)))).toEqual([1000, 1000]);
    const { revision } = await library.put({ account: 'acc_1' }, ['500/1h'], { by: 'jane', reason: 'INC-12' });
    await eventually(() => haveVersion([one, other], 2), 'both gateways');
    const reply = ratesOf(await other.ask('GET', '/api/v1/chats?account_id=acc_1'));
    expect([reply.limit, reply.remaining]).toEqual([500, 497]);
    expect(await limitOf(one)).toBe(500);
    expect(await limitOf(one, 'acc_2')).toBe(1000);
    expect(await library.applied(revision)).toEqual({ instances: 3, of: 3, missing: [] });
    expect(await scrape(one, 'adjustments')).toBe('2');
    const line = () => one.log().find((each) => each.msg === 'limits adjusted' && each.revision === revision);
    expect(await eventually(line, 'the line')).toMatchObject({
      ...{ level: 30, by: 'jane', reason: 'INC-12', source: 'change' },
      limits: ['limits.accounts["…"].allMethods'],
    });
    await library.reset({ account: 'acc_1' }, { by: 'jane' });
    await eventually(() => haveVersion([one, other], 3), 'both gateways');
    expect(await Promise.all([one, other].map((gateway) => limitOf(gateway)))).toEqual([1000, 1000]);
    await Promise.all([one.stop(), other.stop()]);
  });

  it('kill -9 of all, and a start again: the limit is still adjusted, from the first request on', async () => {
    const first = await startGateway(config());
    const library = await startLibrary();
    await library.put({ account: 'acc_3' }, ['400/1h'], { by: 'jane' });
    await eventually(async () => (await limitOf(first, 'acc_3')) === 400, 'the gateway');
    first.signal('SIGKILL');
    await first.exited;
    await library.close();
    const next = await startGateway(config());
    expect(await limitOf(next, 'acc_3')).toBe(400);
    await next.stop();
  });

  it('a frozen store: decisions go on by the adjusted limit', async () => {
    const gateway = await startGateway(config({ storeDeadlineMs: 150 }));
    const library = await startLibrary();
    await library.put({ account: 'acc_4' }, ['3/1h'], { by: 'jane', confirm: true });
    await eventually(async () => (await scrape(gateway, 'version')) === String(library.state.version), 'the gateway');
    server.freeze();
    try {
      const statuses = [];
      for (let i = 0; i < 5; i++) statuses.push((await gateway.ask('GET', '/api/v1/chats?account_id=acc_4')).status);
      expect(statuses).toEqual([200, 200, 200, 429, 429]);
      await eventually(async () => (await scrape(gateway, 'kept')) === '1', 'the metric');
      expect(gateway.log().some(({ msg }) => String(msg).startsWith('adjustments cannot be read'))).toBe(true);
    } finally {
      server.thaw();
    }
    await eventually(async () => (await scrape(gateway, 'kept')) === '0', 'the metric');
    expect(Number(await scrape(gateway, 'refresh_failures_total'))).toBeGreaterThan(0);
    await gateway.stop();
  });

  it.runIf(isRedis)('a gateway on a cluster', async () => {
    const store = `redis-cluster://${inject('redis')
      .clusterPorts.map((port) => `127.0.0.1:${port}`)
      .join()}`;
    const gateway = await startGateway(config({ store, storeDeadlineMs: 10_000 }));
    // The cluster is shared with other test files: an account that none of them uses.
    expect(await limitOf(gateway, 'acc_8')).toBe(1000);
    expect(await scrape(gateway, 'kept')).toBe('0');
    await gateway.stop();
  });
});

describe('without a server', () => {
  it('a file keeps the adjustments, and a reload keeps them over the new base', async () => {
    const folder = scratchFolder();
    const file = join(folder, 'limits.json');
    const writer = createSharedLimits({ base: LIMITS, adjustments: createFileAdjustments(file) });
    await writer.put({ account: 'acc_1' }, ['500/1h'], { by: 'jane' });
    await writer.close();
    const before = readFileSync(file, 'utf8');
    const gateway = await startGateway(config({ store: 'memory', adjustments: { file } }));
    expect(await limitOf(gateway)).toBe(500);
    expect(await limitOf(gateway, 'acc_2')).toBe(1000);
    expect(readFileSync(file, 'utf8')).toBe(before);
    await gateway.stop();
  });

  it('a gateway does not start with a file that it cannot read: more might pass than an operator has allowed', async () => {
    const file = writeConfig('not adjustments');
    const path = writeConfig(config({ store: 'memory', adjustments: { file } }));
    const { code, all } = await runHeadgate(['serve', '--config', path]);
    expect({ code, all }).toEqual({
      code: 2,
      all: expect.stringContaining(`adjustments.file: ${file} has no adjustments that can be read: correct it`),
    });
  });
});

describe('with a file beside the store', () => {
  it.runIf(isRedis)(
    'kill -9 of all, Redis without its data: adjusted again, also while Redis is away; another history wins',
    async () => {
      const own = await startRedis();
      const ownClient = new Redis({ port: own.port, host: '127.0.0.1', retryStrategy: () => 50 });
      ownClient.on('error', () => {});
      const file = join(scratchFolder(), 'limits.json');
      const store = `redis://127.0.0.1:${own.port}/0`;
      const start = () => startGateway(config({ store, storeDeadlineMs: 150, adjustments: { file } }));
      const adjust = async (windows: string): Promise<void> => {
        const limits = createSharedLimits({
          base: LIMITS,
          adjustments: createRedisAdjustments(ownClient),
          logger: false,
        });
        await limits.ready();
        await limits.put({ account: 'acc_1' }, [windows], { by: 'jane', confirm: true });
        await limits.close();
      };
      const keptMax = () => existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).adjustments[0]?.windows[0].max;
      const killAll = async (gateways: readonly Gateway[]): Promise<void> => {
        for (const gateway of gateways) gateway.signal('SIGKILL');
        await Promise.all(gateways.map(({ exited }) => exited));
        await own.kill();
      };
      try {
        const both = await Promise.all([start(), start()]);
        await adjust('2/1h');
        await eventually(() => keptMax() === 2, 'the file');
        await killAll(both);

        const alone = await start();
        const statuses = [];
        for (let i = 0; i < 3; i++) statuses.push((await alone.ask('GET', '/api/v1/chats?account_id=acc_1')).status);
        expect([statuses, await scrape(alone, 'kept')]).toEqual([[200, 200, 429], '1']);
        await own.restart();
        await eventually(async () => (await scrape(alone, 'kept')) === '0', 'Redis');
        expect(await ownClient.hlen('headgate:limits:{adjusted}:now')).toBe(2);
        expect(await limitOf(alone)).toBe(2);
        await killAll([alone]);

        await own.restart();
        await adjust('400/1h');
        const last = await start();
        expect(await limitOf(last)).toBe(400);
        expect(last.log().filter(({ msg }) => String(msg).startsWith('a change of limits is gone'))).toMatchObject([
          { level: 50, by: 'jane', limits: ['limits.accounts["…"].allMethods'] },
        ]);
        await eventually(() => keptMax() === 400, 'the file');
        await last.stop();
      } finally {
        ownClient.disconnect();
        await own.stop();
      }
    },
  );

  it('a file that it cannot read is told and left: the store has the adjustments', async () => {
    const file = writeConfig('not adjustments');
    const gateway = await startGateway(config({ adjustments: { file } }));
    await limitOf(gateway);
    expect(gateway.log().find(({ msg }) => String(msg).startsWith('the file of the adjustments'))).toMatchObject({
      level: 40,
      err: { message: expect.stringContaining('has no adjustments that can be read') },
    });
    await gateway.stop();
    expect(readFileSync(file, 'utf8')).toBe('not adjustments');
  });
});
