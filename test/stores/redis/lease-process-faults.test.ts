/** S32: real processes with leases on a real Redis, killed, stopped, and without their server for a time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { Admissions, type LeaseProcess, leaseProcesses } from '../../support/leases/lease-processes.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const LEASE_MS = 200;
const [PER_SECOND, PER_HOUR] = [700, 20_000];
const LIMITS = [`${PER_SECOND}/1s`, `${PER_HOUR}/1h`];
const [SECOND, HOUR] = [1_000, 3_600_000];
const ROUNDS = NIGHTLY ? 12 : 1;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const start = leaseProcesses();

/** What the store has counted in the window of an hour, and when that began. */
async function counted(): Promise<readonly [used: number, startedAt: number]> {
  const client = new Redis(server.port, { lazyConnect: true });
  onTestFinished(() => client.disconnect());
  await client.connect();
  const store = createRedisStore(client, { logger: false });
  const hour = (await store.peek('a', '*', windowSetFrom([], LIMITS, 'account')))[1];
  return [PER_HOUR - (hour?.remaining ?? 0), hour?.startedAt ?? 0];
}

/** It is busy again: leases included, so it was not only admitted by calls. */
async function isBusy(process: LeaseProcess, admissions: Admissions): Promise<void> {
  const [before, leased] = [process.admitted, admissions.leased];
  await until(() => process.admitted > before + 20 && admissions.leased > leased, 'a process decides from leases');
}

it.each(Array.from({ length: ROUNDS }, (_, i) => i))(
  'no window instance admits more than its max, and what processes give back is free again (round %d)',
  async (round) => {
    await (await flush()).quit();
    const admissions = new Admissions();
    const order = { port: server.port, limits: LIMITS, leaseMs: LEASE_MS, pace: 1 };
    const [first, second] = [start(order, admissions), start(order, admissions)];
    await Promise.all([isBusy(first, admissions), isBusy(second, admissions)]);
    // Stopped for longer than its lease, and in the second half of the rounds past the window of a second.
    first.stop();
    await sleep(round < ROUNDS / 2 ? 1.5 * LEASE_MS : 1_100);
    first.goOn();
    await isBusy(first, admissions);
    await second.kill();
    const third = start(order, admissions);
    await isBusy(third, admissions);
    if (round % 2 === 1) {
      await server.kill();
      await sleep(2 * LEASE_MS);
      await server.restart();
      await isBusy(third, admissions);
    }
    const figures = await Promise.all([first.end(), third.end()]);
    const [used, startedAt] = await counted();
    const admitted = admissions.of([HOUR, startedAt]);
    expect(admissions.instances).toBeGreaterThan(1);
    expect(admissions.most(SECOND)).toBeLessThanOrEqual(PER_SECOND);
    expect(admissions.most(HOUR)).toBeLessThanOrEqual(PER_HOUR);
    expect(admitted).toBeLessThanOrEqual(used);
    expect(figures.map(({ held }) => held)).toEqual([0, 0]);
    if (round % 2 === 1) return;
    // Only the killed process left something: at most an eighth of what remained, in two windows.
    const lost = figures.reduce((sum, figure) => sum + figure.lost, 0);
    expect(used - admitted - lost).toBeLessThanOrEqual(PER_SECOND / 8 + 1);
  },
  60_000,
);

it('a full window is exactly full, whichever process its last units are in', async () => {
  await (await flush()).quit();
  const admissions = new Admissions();
  const order = { port: server.port, limits: ['1500/1h'], leaseMs: LEASE_MS, pace: 8 };
  const processes = [start(order, admissions), start(order, admissions)];
  await until(() => admissions.of([HOUR, startOf(admissions)]) >= 1_500, 'the window is full');
  await Promise.all(processes.map((process) => process.end()));
  expect([admissions.most(HOUR), admissions.instances]).toEqual([1_500, 1]);
  expect(admissions.leased).toBeGreaterThan(500);
});

function startOf(admissions: Admissions): number {
  return admissions.starts(HOUR)[0] ?? 0;
}

async function flush(): Promise<Redis> {
  const client = new Redis(server.port);
  await client.flushall();
  return client;
}
