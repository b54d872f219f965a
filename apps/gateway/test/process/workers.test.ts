/** `workers`: several processes that serve behind one primary, which replaces those that end and adds up their metrics. */
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { checkMetrics, ownMetrics } from 'headgate-testbed/promtool';
import { eventually, oneConnection, openRaw, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, held, startUpstream } from 'headgate-testbed/upstream';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type Config,
  configOf,
  freePort,
  type Gateway,
  runHeadgate,
  serve,
  startGateway,
  writeConfig,
} from '../support/gateway.ts';
import { connectForFile, KIND, startStoreServer, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const program = await connectForFile(server);
const upstream = await startUpstream();

/** Long deadlines, because a busy machine must not cause a degraded decision. */
const workersConfig = (rest: Config = {}): Config =>
  configOf(upstream.url, {
    store: server.store(),
    storeDeadlineMs: 10_000,
    workers: 2,
    ...rest,
  });

/** Waits until all workers listen. */
async function start(config: Config): Promise<Gateway> {
  const gateway = await startGateway(config);
  await eventually(() => gateway.log().some(({ msg }) => msg === 'listening'), 'all workers');
  return gateway;
}

type Worker = { readonly worker: number; readonly pid: number };
/** Every worker that has ever listened, oldest first. */
const workersOf = (gateway: Gateway): Worker[] =>
  gateway.log().filter(({ msg }) => msg === 'worker listening') as unknown as Worker[];
const scrape = async (gateway: Gateway) => (await send(gateway.adminPort, { path: '/metrics' })).text;
const sampleOf = (text: string, sample: string): number | undefined => {
  const line = text.split('\n').find((found) => found.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length));
};
const OPEN_200 = 'headgate_requests_total{route="GET /api/v1/open",status="200"}';
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
/** A request on a connection of its own. Its status, or `broken`. */
const ask = (gateway: Gateway): Promise<number | 'broken'> =>
  gateway.ask('GET', '/api/v1/open', {}, { agent: oneConnection() }).then(
    (reply) => reply.status,
    () => 'broken' as const,
  );
/** As many requests that wait at the upstream, each on a connection of its own. */
async function hang(gateway: Gateway, count: number) {
  const hold = held();
  upstream.behave(hold.behaviour);
  const replies = Array.from({ length: count }, () => ask(gateway));
  await eventually(() => hold.waiting() === count, 'the requests at the upstream');
  return { replies, release: hold.release };
}

/** The gateway of the tests that leave it with two workers. Each counts from what was there before. */
const shared = await start(
  workersConfig({
    limits: { default: { allMethods: ['40/1h'] } },
    shadow: { limits: { default: { allMethods: ['4/1h'] } }, store: 'same' },
  }),
);
afterAll(async () => expect((await shared.stop()).code).toBe(0));
let accounts = 9;
/** The target of requests of an account that has none yet: the last of the config, then the one before it. */
const freshChats = () => {
  const account = `acc_${accounts}`;
  accounts -= 1;
  return { account, path: `/api/v1/chats?account_id=${account}` };
};
const running = (gateway: Gateway): Worker[] => workersOf(gateway).filter(({ pid }) => isAlive(pid));

describe('two workers', () => {
  it('take connections in turn; the primary serves the metrics of both, added up, and no request', async () => {
    const gateway = shared;
    const requests = () => gateway.log().filter(({ msg }) => msg === 'request');
    const [before, lines] = [sampleOf(await scrape(gateway), OPEN_200) ?? 0, requests().length];
    for (let i = 0; i < 12; i += 1) expect(await ask(gateway)).toBe(200);
    await eventually(() => requests().length === lines + 12, 'the lines');
    const [first, second] = running(gateway).map(({ worker }) => worker);
    const served = requests()
      .slice(lines)
      .map(({ worker }) => worker);
    for (const worker of [first, second]) {
      expect(served.filter((found) => found === worker).length).toBeGreaterThanOrEqual(5);
    }
    expect(new Set(served)).toEqual(new Set([first, second]));
    const text = await scrape(gateway);
    expect(sampleOf(text, OPEN_200)).toBe(before + 12);
    expect(sampleOf(text, 'headgate_workers')).toBe(2);
    expect(sampleOf(text, 'headgate_worker_ends_total')).toBe(workersOf(gateway).length - 2);
    // Each family once, although three processes have it.
    const types = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(new Set(types).size).toBe(types.length);
  });

  it('have the log level of the config, as the primary has; promtool has no finding about their metrics', async () => {
    const down = `http://127.0.0.1:${await freePort()}`;
    const gateway = await startGateway(workersConfig({ upstream: down, log: { level: 'warn' } }));
    expect(await ask(gateway)).toBe(503);
    await eventually(() => gateway.log().some(({ msg }) => msg === 'request'), 'its line');
    expect(gateway.log().filter(({ level }) => Number(level) < 40)).toEqual([]);
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ msg: 'upstream unreachable', worker: expect.any(Number) }),
    );
    const text = ownMetrics(await scrape(gateway));
    const failure = `headgate_upstream_errors_total{upstream="${new URL(down).host}",cause="refused"}`;
    expect(sampleOf(text, failure)).toBe(1);
    expect(checkMetrics(text)).toEqual([]);
    await gateway.stop();
    expect(gateway.log().filter(({ level }) => Number(level) < 40)).toEqual([]);
  });

  it('admit one allowance between them', async () => {
    const { path } = freshChats();
    const asked = Array.from({ length: 100 }, () => shared.ask('GET', path, {}, { agent: oneConnection() }));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(40);
    expect(statuses.filter((status) => status === 429)).toHaveLength(60);
  });

  it('S21: obey a block that another program sets, both of them', async () => {
    const { account, path } = freshChats();
    const statuses = () =>
      Promise.all(Array.from({ length: 8 }, () => shared.ask('GET', path, {}, { agent: oneConnection() }))).then(
        (replies) => replies.map(({ status }) => status),
      );
    expect(await statuses()).toEqual(Array(8).fill(200));
    await program.limits.block({ account }, { forMs: 60_000 });
    expect(await statuses()).toEqual(Array(8).fill(429));
  });

  it('in memory are a fault of the config', async () => {
    const file = writeConfig(configOf(upstream.url, { workers: 2 }));
    const { code, all } = await runHeadgate(['serve', '--config', file]);
    expect(code).toBe(2);
    expect(all).toContain('workers: several workers need Redis or PostgreSQL as store: in memory');
  });

  it('one worker is the process itself', async () => {
    const gateway = await start(workersConfig({ workers: 1 }));
    expect(await ask(gateway)).toBe(200);
    await eventually(() => gateway.log().some(({ msg }) => msg === 'request'), 'the line');
    expect(gateway.log().some((line) => 'worker' in line)).toBe(false);
    expect(await scrape(gateway)).not.toContain('headgate_workers');
    await gateway.stop();
  });

  it('a circuit breaker that is open in both is shown as open, not as twice that', async () => {
    const own = await startStoreServer();
    const gateway = await start(workersConfig({ store: own.store(), storeDeadlineMs: 50, upstreamTimeoutMs: 1_000 }));
    own.freeze();
    await eventually(async () => {
      await Promise.all(
        Array.from({ length: 8 }, () =>
          gateway.ask('GET', '/api/v1/chats?account_id=acc_1', {}, { agent: oneConnection() }),
        ),
      );
      return sampleOf(await scrape(gateway), `headgate_${KIND}_store_breaker`) === 2;
    }, 'the open circuit breaker');
    own.thaw();
    await gateway.stop();
    await own.stop();
  });
});

describe('a candidate for other limits', () => {
  it('S27: workers count together in the store of the config', async () => {
    const { path } = freshChats();
    const decided = async () => {
      const lines = (await scrape(shared))
        .split('\n')
        .filter((line) => line.startsWith('headgate_shadow_decisions_total{'));
      return ['accepted', 'rejected'].map((candidate) =>
        lines
          .filter((line) => line.includes(`candidate="${candidate}"`))
          .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0),
      );
    };
    const [accepted = 0, rejected = 0] = await decided();
    for (let i = 0; i < 10; i++) {
      expect((await shared.ask('GET', path, {}, { agent: oneConnection() })).status).toBe(200);
    }
    await eventually(
      async () => String(await decided()) === String([accepted + 4, rejected + 6]),
      '4 that the candidate accepts, and 6 that it rejects',
    );
  });

  it('in the memory of each worker it is a fault of the config', async () => {
    const limits = { default: { allMethods: ['4/1h'] } };
    const file = writeConfig(workersConfig({ shadow: { limits, store: 'memory' } }));
    const { code, all } = await runHeadgate(['check', '--config', file]);
    expect(code).not.toBe(0);
    expect(all).toContain('shadow.store: must be "same" with several workers');
  });
});

describe('a worker that dies', () => {
  it('takes only its own requests with it, is replaced and logged, and no sum falls', async () => {
    const gateway = shared;
    upstream.behave(answer());
    const first = sampleOf(await scrape(gateway), OPEN_200) ?? 0;
    for (let i = 0; i < 6; i += 1) await ask(gateway);
    const before = sampleOf(await scrape(gateway), OPEN_200) ?? 0;
    expect(before).toBe(first + 6);
    const hanging = await hang(gateway, 6);
    const started = workersOf(gateway).length;
    const [victim] = running(gateway) as [Worker, Worker];
    process.kill(victim.pid, 'SIGKILL');
    await eventually(() => workersOf(gateway).length === started + 1, 'the replacement');
    hanging.release();
    const outcomes = await Promise.all(hanging.replies);
    const wholeAtUpstream = await Promise.all(upstream.seen.slice(-6).map(({ over }) => over));
    const survived = wholeAtUpstream.filter((isWhole) => isWhole).length;
    expect(survived).toBeGreaterThan(0);
    expect(survived).toBeLessThan(6);
    expect(outcomes.filter((outcome) => outcome === 200)).toHaveLength(survived);
    expect(outcomes.filter((outcome) => outcome === 'broken')).toHaveLength(6 - survived);
    const line = gateway.log().findLast(({ msg }) => msg === 'worker ended: another takes its place');
    expect(line).toMatchObject({ level: 50, ...pick(victim), code: null, signal: 'SIGKILL', pauseMs: 0 });
    await eventually(async () => sampleOf(await scrape(gateway), OPEN_200) === before + survived, 'the sum');
    const text = await scrape(gateway);
    expect(sampleOf(text, 'headgate_workers')).toBe(2);
    expect(sampleOf(text, 'headgate_worker_ends_total')).toBe(started - 1);
    upstream.behave(answer());
    for (let i = 0; i < 4; i += 1) expect(await ask(gateway)).toBe(200);
  });

  it('also closes the connection that it had not accepted yet, so that the client need not wait', async () => {
    const gateway = shared;
    upstream.behave(answer());
    const started = workersOf(gateway).length;
    const [victim] = running(gateway) as [Worker, Worker];
    process.kill(victim.pid, 'SIGSTOP');
    const connections = await Promise.all(Array.from({ length: 4 }, () => openRaw(gateway.port)));
    for (const connection of connections) connection.write(rawRequest('GET', '/healthz'));
    // All but the one that is on its way to the stopped worker.
    await eventually(() => connections.filter(({ replies }) => replies().length === 1).length >= 3, 'three replies');
    process.kill(victim.pid, 'SIGKILL');
    const silent = connections.filter(({ replies }) => replies().length === 0);
    expect(silent).toHaveLength(1);
    await silent[0]?.closed;
    for (const connection of connections) connection.destroy();
    await eventually(() => workersOf(gateway).length === started + 1, 'the replacement');
  });
});

describe('workers that cannot start', () => {
  it('a port in use ends the process with the same message as without workers', async () => {
    const taken = await startUpstream();
    const outputs = await Promise.all(
      [1, 2].map((workers) =>
        runHeadgate([
          'serve',
          '--config',
          writeConfig(workersConfig({ workers, listen: { host: '127.0.0.1', port: taken.port } })),
        ]),
      ),
    );
    expect(outputs.map(({ code }) => code)).toEqual([1, 1]);
    expect(outputs[1]?.stderr).toContain(`port ${taken.port} of 127.0.0.1 is in use (EADDRINUSE)`);
    expect(outputs[1]?.stderr).toBe(outputs[0]?.stderr);
  });
});

describe('the end', () => {
  it('requests that hang are cut off after drainMs, and counted for all workers together', async () => {
    const gateway = await start(workersConfig({ drainMs: 300 }));
    const hanging = await hang(gateway, 4);
    expect(await gateway.stop()).toEqual({ code: 0, signal: null });
    expect(gateway.log().find(({ msg }) => msg === 'stopped')).toMatchObject({ cutOff: 4 });
    for (const outcome of await Promise.all(hanging.replies)) expect(['broken', 503, 504]).toContain(outcome);
    hanging.release();
  });

  it('a signal to every process, as from a terminal: running requests finish, with exit code 0; to a worker alone, it does nothing', async () => {
    const gateway = await start(workersConfig());
    const hanging = await hang(gateway, 4);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      for (const { pid } of workersOf(gateway)) process.kill(pid, signal);
    }
    gateway.signal('SIGINT');
    await eventually(() => gateway.log().some(({ msg }) => msg === 'draining'), 'the line');
    hanging.release();
    expect(await Promise.all(hanging.replies)).toEqual([200, 200, 200, 200]);
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(gateway.log().at(-1)).toMatchObject({ msg: 'stopped', cutOff: 0 });
    for (const { pid } of workersOf(gateway)) expect(isAlive(pid)).toBe(false);
    expect(gateway.output()).not.toContain('worker ended');
  });

  it('a second signal ends all processes at once, with 1', async () => {
    const gateway = await start(workersConfig({ drainMs: 60_000 }));
    const hanging = await hang(gateway, 4);
    gateway.signal('SIGTERM');
    await eventually(() => gateway.log().some(({ msg }) => msg === 'draining'), 'the line');
    gateway.signal('SIGTERM');
    expect((await gateway.exited).code).toBe(1);
    expect(await Promise.all(hanging.replies)).toEqual(Array(4).fill('broken'));
    await eventually(() => workersOf(gateway).every(({ pid }) => !isAlive(pid)), 'the end of the workers');
    hanging.release();
  });

  it('if the primary is killed, the workers finish what runs and end', async () => {
    const gateway = await start(workersConfig());
    const hanging = await hang(gateway, 4);
    gateway.process.kill('SIGKILL');
    await eventually(
      () => gateway.log().filter(({ msg }) => msg === 'the primary has ended: draining').length === 2,
      'both lines',
    );
    hanging.release();
    expect(await Promise.all(hanging.replies)).toEqual([200, 200, 200, 200]);
    await eventually(() => workersOf(gateway).every(({ pid }) => !isAlive(pid)), 'the end of the workers');
  });

  it('if the primary is killed, a worker that is about to listen ends as well', async () => {
    // A worker that starts waits for a second for this store, and then listens.
    const connected: (() => void)[] = [];
    const store = createServer(() => connected.shift()?.());
    await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
    afterFile(() => void store.close());
    const { port } = store.address() as AddressInfo;
    const gateway = await start(workersConfig({ store: `redis://127.0.0.1:${port}/0`, storeDeadlineMs: 250 }));
    for (const { pid } of workersOf(gateway)) process.kill(pid, 'SIGKILL');
    await eventually(() => workersOf(gateway).every(({ pid }) => !isAlive(pid)), 'the end of the first workers');
    await new Promise<void>((resolve) => connected.push(resolve));
    gateway.process.kill('SIGKILL');
    // The workers write to the output of the primary, so it closes at the end of the last worker.
    await gateway.exited;
  });
});

describe('a reload', () => {
  /** A gateway whose config file can be written again. */
  async function startWithFile(max: number) {
    const [port, adminPort] = [await freePort(), await freePort()];
    const listeners = { listen: { host: '127.0.0.1', port }, admin: { host: '127.0.0.1', port: adminPort } };
    const configWith = (limit: number, rest: Config = {}) =>
      JSON.stringify(workersConfig({ ...listeners, limits: { default: { allMethods: [`${limit}/1h`] } }, ...rest }));
    const file = writeConfig(configWith(max));
    const gateway = await serve(['--config', file], port, adminPort);
    await eventually(() => gateway.log().some(({ msg }) => msg === 'listening'), 'all workers');
    const write = (limit: number, rest?: Config) => writeFileSync(file, configWith(limit, rest));
    return { gateway, write };
  }
  /** The limits that as many connections see. */
  const limitsSeen = async (gateway: Gateway, connections: number): Promise<Set<unknown>> => {
    const asked = Array.from({ length: connections }, () =>
      gateway.ask('GET', '/api/v1/chats?account_id=acc_2', {}, { agent: oneConnection() }),
    );
    return new Set((await Promise.all(asked)).map(({ headers }) => headers['x-ratelimit-limit']));
  };
  const reloads = (gateway: Gateway) => gateway.log().filter(({ msg }) => msg === 'config reloaded').length;

  it('reaches every worker, and those that start later', async () => {
    const { gateway, write } = await startWithFile(500);
    expect(await limitsSeen(gateway, 6)).toEqual(new Set(['500']));
    write(700, { workers: 3 });
    gateway.signal('SIGHUP');
    await eventually(() => reloads(gateway) === 1, 'the reload');
    expect(await limitsSeen(gateway, 6)).toEqual(new Set(['700']));
    const lines = gateway.log().filter(({ needsRestart }) => needsRestart !== undefined);
    expect(lines.map(({ needsRestart }) => needsRestart)).toEqual([['workers']]);
    const [victim] = workersOf(gateway) as [Worker, Worker];
    process.kill(victim.pid, 'SIGKILL');
    await eventually(() => workersOf(gateway).length === 3, 'the replacement');
    expect(await limitsSeen(gateway, 6)).toEqual(new Set(['700']));
    expect(sampleOf(await scrape(gateway), 'headgate_config_reloads_total{result="applied"}')).toBe(1);
    expect(sampleOf(await scrape(gateway), 'headgate_config_last_reload_successful')).toBe(1);
    expect((await gateway.stop()).code).toBe(0);
  });

  // It waits for ten seconds until the primary gives up.
  it.runIf(NIGHTLY)('a worker that does not apply it is replaced by one that has it', async () => {
    const { gateway, write } = await startWithFile(500);
    const [victim] = workersOf(gateway) as [Worker, Worker];
    process.kill(victim.pid, 'SIGSTOP');
    write(700);
    gateway.signal('SIGHUP');
    await eventually(() => reloads(gateway) === 1, 'the reload', 20_000);
    const line = gateway.log().find(({ msg }) => msg === 'worker could not reload: another takes its place');
    expect(line).toMatchObject({ level: 50, worker: victim.worker });
    await eventually(() => workersOf(gateway).length === 3, 'the replacement');
    process.kill(victim.pid, 'SIGKILL');
    // Until its end is noticed, a connection can be on its way to it.
    const seen = () => limitsSeen(gateway, 6).catch(() => undefined);
    expect(await eventually(seen, 'six replies')).toEqual(new Set(['700']));
    expect((await gateway.stop()).code).toBe(0);
    expect(gateway.output()).not.toContain('worker ended');
  });
});

describe('health checks', () => {
  it('the admin listener is ready while a worker listens', async () => {
    const gateway = shared;
    for (const path of ['/livez', '/readyz', '/healthz']) {
      expect((await send(gateway.adminPort, { path })).status).toBe(200);
      expect((await gateway.ask('GET', path)).status).toBe(200);
    }
    for (const { pid } of running(gateway)) process.kill(pid, 'SIGKILL');
    const statuses: number[] = [];
    await eventually(async () => {
      statuses.push((await send(gateway.adminPort, { path: '/readyz' })).status);
      return statuses.includes(503) && statuses.at(-1) === 200;
    }, '503, and 200 again');
  });
});

it('"auto" starts one process per processor', async () => {
  const gateway = await start(workersConfig({ workers: 'auto' }));
  expect(await ask(gateway)).toBe(200);
  expect((await gateway.stop()).code).toBe(0);
});

function pick({ worker, pid }: Worker): Worker {
  return { worker, pid };
}
