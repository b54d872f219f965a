import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import { decorateStore } from '../../src/core/decorate-store.ts';
import { createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker, type JobWorkerOptions } from '../../src/waiting/index.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const SUBJECT = { account: 'acc', route: 'route' };
const REFUSED = { status: 429, headers: { 'retry-after': '3' } };
const ACCEPTED = { status: 200, headers: {} };

/** Two workers are two processes: each has a store object of its own over the same counters. */
function fleetOf(options: JobWorkerOptions = {}) {
  const timers = createFakeTimers(1);
  const shared = createMemoryStore({ clock: timers });
  const log: string[] = [];
  const decisions: Decision[] = [];
  const open = () => {
    const limiter = createLimiter({ store: decorateStore(shared, {}), limits: ['100/1h'] });
    const worker = createJobWorker(limiter, { timers, ...options });
    const acquire = (name: string, subject = SUBJECT) =>
      worker.acquire(subject).then(
        (decision) => {
          decisions.push(decision);
          log.push(`${timers.now() - 1} ${name}`);
        },
        (error) => log.push(`${timers.now() - 1} ${name} ${error.code}`),
      );
    return { worker, acquire };
  };
  return { timers, log, decisions, open, shared };
}

describe('a worker whose provider refuses', () => {
  it('S30: jobs of every process wait until then, the first goes alone, the rest when it was accepted', async () => {
    const { timers, log, decisions, open } = fleetOf();
    const workers = [open(), open(), open(), open()];
    const [one, two] = workers as [ReturnType<typeof open>, ReturnType<typeof open>];
    await one.acquire('first');
    expect(await one.worker.cooldown(decisions[0] as Decision, REFUSED)).toEqual({
      state: 'started',
      target: SUBJECT,
      forMs: 3_000,
    });
    for (const [i, { acquire }] of workers.entries()) for (const name of ['a', 'b']) void acquire(`${name}${i}`);
    await timers.advance(2_999);
    expect(log.splice(0)).toEqual(['0 first']);
    await timers.advance(1_000);
    expect(log).toHaveLength(1);
    await timers.advance(4_000);
    expect(log).toHaveLength(1);
    const [at] = (log[0] as string).split(' ');
    expect(Number(at)).toBeGreaterThanOrEqual(3_000);
    const prober = workers[Number((log[0] as string).at(-1))] as typeof one;
    await prober.worker.cooldown(decisions[1] as Decision, ACCEPTED);
    await settled();
    // The process of that job wakes at once, and the others within a second.
    expect(log).toHaveLength(2);
    await timers.advance(1_000);
    expect(log).toHaveLength(8);
    expect(await two.worker.cooldown(SUBJECT, ACCEPTED)).toBeUndefined();
  });

  it('S30: a job that would wait longer than it may is rejected at once, and other accounts go on', async () => {
    const { log, decisions, open } = fleetOf({ cooldown: { scope: 'account' } });
    const { worker, acquire } = open();
    await acquire('first');
    await worker.cooldown(decisions[0] as Decision, REFUSED);
    await acquire('other', { account: 'other', route: 'route' });
    await expect(worker.acquire({ account: 'acc', route: 'any' }, { maxWaitMs: 2_000 })).rejects.toThrow(
      expect.objectContaining({ code: 'wait_too_long' }),
    );
    expect(log).toEqual(['0 first', '0 other']);
  });

  it('S30: an account and a route do instead of the decision; if nobody reports an accepted answer, all go after 10 s', async () => {
    const { timers, log, open } = fleetOf();
    const { worker, acquire } = open();
    await acquire('first');
    await worker.cooldown(SUBJECT, new Response(null, REFUSED));
    for (const name of ['a', 'b', 'c']) void acquire(name);
    await timers.advance(3_000);
    expect(log.splice(0)).toEqual(['0 first', '3000 a']);
    await worker.cooldown(SUBJECT, new Response(null, REFUSED));
    await timers.advance(3_000);
    expect(log.splice(0)).toEqual(['6000 b']);
    void acquire('d');
    await timers.advance(11_000);
    expect(log.map((line) => line.split(' ')[1])).toEqual(['c', 'd']);
  });

  it('refuses what is no response, a store that cannot do it, and a closed worker', async () => {
    const { open, shared } = fleetOf();
    const { worker } = open();
    await expect(worker.cooldown(SUBJECT, { status: 429 } as never)).rejects.toThrow(/^response: must be/);
    await expect(worker.cooldown({ account: 1 } as never, REFUSED)).rejects.toThrow(/account/);
    await worker.close();
    await expect(worker.cooldown(SUBJECT, REFUSED)).rejects.toThrow(expect.objectContaining({ code: 'closed' }));
    const { cooldown: _, ...without } = decorateStore(shared, {});
    const limiter = createLimiter({ store: without, limits: ['1/1h'] });
    await expect(createJobWorker(limiter).cooldown(SUBJECT, REFUSED)).rejects.toThrow(/^cooldown: needs a limiter/);
    expect(() => createJobWorker(limiter, { cooldown: {} })).toThrow(/^cooldown: needs a limiter/);
    expect(() => createJobWorker(limiter, { cooldown: { scope: 'x' as never } })).toThrow(/^cooldown.scope: /);
  });
});
