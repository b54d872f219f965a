import { describe, expect, it } from 'vitest';
import { createLimiter, type Decision, type LimiterOptions } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const SUBJECT = { account: 'a', route: 'r' };

function setUp(limits: LimiterOptions['limits']) {
  const timers = createFakeTimers(0);
  const store = createMemoryStore({ clock: timers });
  const limiter = createLimiter({ store, limits, validate: false });
  const worker = createJobWorker(limiter, { timers });
  const log: string[] = [];
  const held = new Map<string, Decision>();
  const acquire = (name: string, request = {}, options = {}): Promise<unknown> =>
    worker.acquire({ ...SUBJECT, ...request }, options).then(
      (decision) => {
        log.push(`${timers.now()} ${name}`);
        held.set(name, decision);
      },
      (error) => log.push(`${timers.now()} ${name} ${error.code ?? error.message}`),
    );
  const release = async (name: string): Promise<void> => {
    await limiter.release(held.get(name) as Decision);
    await settled();
  };
  return { timers, store, limiter, worker, log, acquire, release };
}

describe('a worker with limits in flight (S29)', () => {
  it('S29: a release wakes the next job at once, in the order of the jobs', async () => {
    const { timers, log, acquire, release } = setUp({ allMethods: { windows: ['100/1m'], inFlight: 2 } });
    for (const name of ['a', 'b', 'c', 'd', 'e']) void acquire(name);
    await settled();
    expect(log).toEqual(['0 a', '0 b']);
    await timers.advance(10_000);
    expect(log).toHaveLength(2);
    await release('b');
    await release('a');
    await release('c');
    expect(log).toEqual(['0 a', '0 b', '10000 c', '10000 d', '10000 e']);
  });

  it('S29: the routes of an account take turns, and no job starves', async () => {
    const { log, acquire, release, limiter, worker } = setUp({
      allMethods: { inFlight: 1 },
      routes: { own: { inFlight: 1 } },
    });
    const first = await limiter.consume(SUBJECT);
    for (const route of ['r', 's', 'own']) for (const i of [1, 2, 3]) void acquire(`${route}${i}`, { route });
    await settled();
    await limiter.release(first);
    await settled();
    for (let i = 0; i < 8; i++) await release((log[i] as string).slice(2));
    expect(log.map((line) => line.slice(2))).toEqual(['r1', 's1', 'own1', 'r2', 's2', 'own2', 'r3', 's3', 'own3']);
    expect(worker.waiting).toBe(0);
  });

  it('S29: what other processes release is found within a second', async () => {
    const { timers, store, log, acquire } = setUp({ allMethods: { inFlight: 1 } });
    const other = createLimiter({ store, limits: { allMethods: { inFlight: 1 } } });
    const decision = await other.consume(SUBJECT);
    void acquire('a');
    await timers.advance(5_000);
    await other.release(decision);
    expect(log).toEqual([]);
    await timers.advance(1_000);
    expect(log).toEqual([expect.stringMatching(/^\d+ a$/)]);
  });

  it('S29: a job does not wait beyond its maxWaitMs, and takes no slot if it gives up', async () => {
    const { timers, log, acquire, release, limiter } = setUp({ allMethods: { windows: ['9/1m'], inFlight: 1 } });
    await acquire('a');
    await acquire('never', {}, { maxWaitMs: 0 });
    const controller = new AbortController();
    void acquire('aborted', {}, { signal: controller.signal });
    void acquire('late', {}, { maxWaitMs: 3_000 });
    await timers.advance(2_999);
    controller.abort(new Error('aborted'));
    await timers.advance(1);
    await timers.advance(1);
    expect(log).toEqual([
      '0 a',
      '0 never wait_too_long',
      '2999 aborted aborted',
      expect.stringMatching(/^300[01] late wait_too_long$/),
    ]);
    await release('a');
    expect((await limiter.consume(SUBJECT)).inFlight).toEqual({ running: 1, max: 1 });
    // The rejected jobs charged nothing.
    expect((await limiter.peek(SUBJECT))[0]?.remaining).toBe(7);
  });

  it('S29: run() releases the slot when its job has ended, also if it failed', async () => {
    const { worker, limiter } = setUp({ allMethods: { inFlight: 1 } });
    expect(await worker.run(SUBJECT, async ({ inFlight }) => inFlight)).toEqual({ running: 1, max: 1 });
    await expect(worker.run(SUBJECT, () => Promise.reject(new Error('job')))).rejects.toThrow('job');
    await expect(worker.run(SUBJECT, 1 as never)).rejects.toThrow('job: must be a function');
    expect((await limiter.consume(SUBJECT)).accepted).toBe(true);
  });

  it('S29: jobs of a group wait for the releases of the group', async () => {
    const { log, acquire, release, timers } = setUp({
      allMethods: ['100/1m'],
      groups: { customer: { allMethods: { inFlight: 1 } } },
    });
    const groups = { customer: 'c' };
    await acquire('a', { groups });
    void acquire('b', { groups, account: 'b' });
    await settled();
    await release('a');
    expect([log, timers.now()]).toEqual([['0 a', '0 b'], 0]);
  });

  it('S29: never runs more than the limit, and every job in the end, in random histories', async () => {
    const { worker, timers } = setUp({
      allMethods: { windows: ['40/1s'], inFlight: 3 },
      routes: { r1: { inFlight: 1 } },
    });
    let running = 0;
    let most = 0;
    let done = 0;
    const jobs = Array.from({ length: 200 }, (_, i) =>
      worker.run({ account: 'a', route: `r${i % 3}` }, async () => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => void timers.after(Math.floor(Math.random() * 40), resolve, false));
        running--;
        done++;
      }),
    );
    await timers.advance(60_000);
    await Promise.all(jobs);
    expect([most, running, done, timers.waiting]).toEqual([3, 0, 200, 0]);
  });
});
