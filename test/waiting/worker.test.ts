import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { decorateStore } from '../../src/core/decorate-store.ts';
import type { Timers } from '../../src/idempotency/index.ts';
import { createLimiter, type Decision, type LimiterOptions, StoreUnavailableError } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFailover } from '../../src/stores/shared/failover.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createDistantStore } from '../support/distant-store.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const SUBJECT = { account: 'acc', route: 'route' };
const DAY_MS = 86_400_000;

/** A worker on a memory store, both in fake time. It records what happens to each job, and when. */
function workerOf(limits: LimiterOptions['limits'], options: { maxQueue?: number } = {}) {
  const timers = createFakeTimers(0);
  const store = createMemoryStore({ clock: timers });
  let checks = 0;
  const counting = decorateStore(store, {
    consume:
      (consume) =>
      (...args) => {
        checks++;
        return consume(...args);
      },
  });
  const limiter = createLimiter({ store: counting, limits });
  const worker = createJobWorker(limiter, { timers, ...options });
  const log: string[] = [];
  const acquire = (name: string, request = {}, acquireOptions = {}): Promise<unknown> =>
    worker.acquire({ ...SUBJECT, ...request }, acquireOptions).then(
      () => log.push(`${timers.now()} ${name}`),
      (error) => log.push(`${timers.now()} ${name} ${error.code ?? error.message ?? error}`),
    );
  return { timers, limiter, worker, log, acquire, checks: () => checks };
}

describe('a worker', () => {
  it('serves the jobs of one account and route in their order, as soon as each window ends', async () => {
    const { timers, log, acquire } = workerOf({ allMethods: ['2/1s', '4/1m'] });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) void acquire(name);
    await timers.advance(120_000);
    expect(log).toEqual(['0 a', '0 b', '1000 c', '1000 d', '60000 e', '60000 f']);
  });

  it('asks once per job: a window that is known to be full is not asked again', async () => {
    const { timers, log, acquire, checks } = workerOf({ allMethods: ['10/1s', '100/1m'] });
    for (let i = 0; i < 300; i++) void acquire(`${i}`);
    await timers.advance(3 * 60_000);
    expect(log).toHaveLength(300);
    expect(checks()).toBe(300);
  });

  it('asks nothing and has one timer while its jobs wait', async () => {
    const { timers, acquire, checks } = workerOf({ allMethods: ['1/1m'] });
    for (let i = 0; i < 50; i++) void acquire(`${i}`);
    await settled();
    expect([checks(), timers.waiting]).toEqual([1, 1]);
    await timers.advance(59_999);
    expect([checks(), timers.waiting]).toEqual([1, 1]);
  });

  it('accounts and routes do not wait for each other', async () => {
    const { timers, log, acquire } = workerOf({ allMethods: ['1/1s'] });
    void acquire('a');
    void acquire('b');
    void acquire('other account', { account: 'acc_2' });
    void acquire('other route', { route: 'route 2' });
    await timers.advance(1_000);
    expect(log).toEqual(['0 a', '0 other account', '0 other route', '1000 b']);
  });

  it('S31: jobs wait for the window of their group, and an account that got nothing asks first', async () => {
    const { timers, log, acquire } = workerOf({ default: ['9/1s'], groups: { customer: ['2/1s'], key: ['9/1s'] } });
    for (let turn = 1; turn <= 2; turn++)
      for (const account of ['a', 'b', 'c'])
        void acquire(`${account}${turn}`, { account, groups: { customer: 'cus_7' } });
    void acquire('other customer', { account: 'a', groups: { customer: 'cus_8' } });
    void acquire('other group', { account: 'c', groups: { key: 'k' } });
    void acquire('no group', { account: 'c' });
    await timers.advance(5_000);
    expect(log.slice(0, 5)).toEqual(['0 a1', '0 b1', '0 other customer', '0 other group', '0 no group']);
    expect(log.slice(5).sort()).toEqual(['1000 c1', '1000 c2', '2000 a2', '2000 b2']);
  });

  it('S11, S31: a cost that the group can never fit is an error, and a job does not wait longer than it may', async () => {
    const { timers, log, acquire, limiter } = workerOf({ default: ['9/1s'], groups: { customer: ['2/1m'] } });
    const groups = { customer: 'cus_7' };
    await acquire('large', { cost: 3, groups });
    await acquire('all', { cost: 2, groups });
    await acquire('late', { groups }, { maxWaitMs: 59_000 });
    await timers.advance(60_000);
    expect(log).toEqual(['0 large never_fits', '0 all', '0 late wait_too_long']);
    expect(await limiter.peek(SUBJECT)).toMatchObject([{ remaining: 9, startedAt: undefined }]);
  });

  it('S11: waits until the cost fits; a cheaper job behind it does not overtake', async () => {
    const { timers, log, acquire } = workerOf({ allMethods: ['5/1s'] });
    void acquire('a', { cost: 3 });
    void acquire('b', { cost: 3 });
    void acquire('c', { cost: 1 });
    await timers.advance(2_000);
    expect(log).toEqual(['0 a', '1000 b', '1000 c']);
  });

  it('S9, S11: a cost that never fits is an error at once', async () => {
    const { timers, log, acquire, checks } = workerOf({
      routes: { zero: ['0/1s'], five: ['5/1s', '9/1m'] },
    });
    void acquire('a', { route: 'zero' });
    void acquire('b', { route: 'five', cost: 6 });
    await settled();
    expect(log).toEqual(['0 a never_fits', '0 b never_fits']);
    expect([checks(), timers.waiting]).toEqual([0, 0]);
  });

  it('S10: a job whose cost does not fit any more is an error when it asks', async () => {
    const { timers, limiter, log, acquire } = workerOf({ allMethods: ['2/1s'] });
    for (const name of ['a', 'b', 'c']) void acquire(name);
    await settled();
    limiter.adjust({}, ['0/1s']);
    await timers.advance(1_000);
    expect(log).toEqual(['0 a', '0 b', '1000 c never_fits']);
  });

  it('jobs with other limits in one queue keep their order, and are asked for by themselves', async () => {
    const limits = { providers: { small: { allMethods: ['1/1s'] }, large: { allMethods: ['5/1s'] } } };
    const { timers, log, acquire } = workerOf(limits);
    const abort = new AbortController();
    for (const account of ['waits', 'leaves']) {
      const signal = account === 'leaves' ? abort.signal : undefined;
      void acquire(`${account} a`, { account, provider: 'small' });
      void acquire(`${account} b`, { account, provider: 'small' }, { signal });
      void acquire(`${account} c`, { account, provider: 'large' }, { maxWaitMs: 1_000 });
    }
    await settled();
    abort.abort(new Error('gone'));
    await timers.advance(1_000);
    expect(log).toEqual(['0 waits a', '0 leaves a', '0 leaves b gone', '0 leaves c', '1000 waits b', '1000 waits c']);
  });

  it('S21: waits exactly until a block is over, and asks nothing meanwhile', async () => {
    const { timers, limiter, log, acquire, checks } = workerOf({ allMethods: ['10/1s'] });
    await limiter.block({ account: 'acc' }, { forMs: 5_000 });
    for (const name of ['a', 'b', 'c']) void acquire(name);
    await timers.advance(4_999);
    expect([log, checks(), timers.waiting]).toEqual([[], 1, 1]);
    await timers.advance(1);
    expect(log).toEqual(['5000 a', '5000 b', '5000 c']);
  });

  it('S21: notices within a minute that a block was lifted', async () => {
    const { timers, limiter, log, acquire, checks } = workerOf({ allMethods: ['10/1s'] });
    await limiter.block({ account: 'acc' }, { forMs: 30 * 86_400_000 });
    for (const name of ['a', 'b']) void acquire(name);
    await timers.advance(90_000);
    expect([log, checks()]).toEqual([[], 2]);
    void acquire('c', {}, { maxWaitMs: 86_400_000 });
    await settled();
    expect(log).toEqual(['90000 c wait_too_long']);
    await limiter.unblock({ account: 'acc' });
    await timers.advance(30_000);
    expect(log.slice(1)).toEqual(['120000 a', '120000 b']);
  });

  it('S21: a job whose maxWaitMs ends before the block is an error as soon as that is known', async () => {
    const { timers, limiter, log, acquire } = workerOf({ allMethods: ['1/10s'] });
    await limiter.block({ account: 'acc', route: SUBJECT.route }, { forMs: 5_000 });
    void acquire('a', {}, { maxWaitMs: 4_999 });
    void acquire('b', {}, { maxWaitMs: 5_000 });
    await settled();
    expect(log).toEqual(['0 a wait_too_long']);
    void acquire('c', {}, { maxWaitMs: 4_999 });
    await settled();
    expect(log).toEqual(['0 a wait_too_long', '0 c wait_too_long']);
    await timers.advance(5_000);
    expect(log.slice(2)).toEqual(['5000 b']);
  });

  it('without limits, a job does not wait', async () => {
    const { log, acquire, timers } = workerOf({ unlimited: true });
    for (let i = 0; i < 250; i++) void acquire(`${i}`);
    await settled();
    await settled();
    expect([log.length, timers.waiting]).toEqual([250, 0]);
  });

  it('a window of more than 24.8 days, the longest timer, is waited for', async () => {
    const { timers, limiter, checks } = workerOf({ allMethods: ['1/40d'] });
    const delays: number[] = [];
    // As the platform's timers: never longer than 2^31 - 1 ms.
    const bounded: Timers = {
      now: timers.now,
      after(ms, call, background) {
        delays.push(Math.min(ms, 2 ** 31 - 1));
        return timers.after(Math.min(ms, 2 ** 31 - 1), call, background);
      },
    };
    const worker = createJobWorker(limiter, { timers: bounded });
    await worker.acquire(SUBJECT);
    const second = worker.acquire(SUBJECT);
    await timers.advance(40 * DAY_MS);
    await second;
    expect(delays).toEqual([2 ** 31 - 1, 40 * DAY_MS - (2 ** 31 - 1)]);
    // One per job: none when the first of the two timers is due.
    expect(checks()).toBe(2);
  });

  it('a timer that is early is set again', async () => {
    const { timers, limiter, checks } = workerOf({ allMethods: ['1/1s'] });
    const early: Timers = { now: timers.now, after: (ms, call, b) => timers.after(Math.max(1, ms - 1), call, b) };
    const worker = createJobWorker(limiter, { timers: early });
    const decisions = [worker.acquire(SUBJECT), worker.acquire(SUBJECT)];
    await timers.advance(1_000);
    expect((await Promise.all(decisions)).map(({ decidedAt }) => decidedAt)).toEqual([0, 1_000]);
    expect(checks()).toBe(2);
  });

  it('checks what it is given', async () => {
    const { limiter, worker } = workerOf({ allMethods: ['1/1s'] });
    expect(() => createJobWorker({} as never)).toThrow('limiter: must be what createLimiter() returned');
    expect(() => createJobWorker(limiter, { maxQueue: 0 })).toThrow(
      'options.maxQueue: must be a positive integer, got 0',
    );
    expect(() => createJobWorker(limiter, { maxWait: 1 } as never)).toThrow('options.maxWait: unknown option');
    await expect(worker.acquire('acc_1' as never)).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(worker.acquire({ account: 1 } as never)).rejects.toMatchObject({ code: 'invalid_subject' });
    await expect(worker.acquire({ ...SUBJECT, cost: 0.5 })).rejects.toMatchObject({ code: 'invalid_cost' });
    for (const options of [{ maxWaitMs: -1 }, { maxWaitMs: Number.NaN }, { signal: {} }, { wait: 1 }])
      await expect(worker.acquire(SUBJECT, options as never)).rejects.toMatchObject({ code: 'invalid_option' });
    expect(worker.waiting).toBe(0);
  });
});

describe('maxWaitMs', () => {
  it('rejects at once a job that cannot be served in time', async () => {
    const { timers, log, acquire } = workerOf({ allMethods: ['2/1s'] });
    void acquire('a');
    void acquire('b');
    await settled();
    for (const [name, maxWaitMs] of Object.entries({ c: 999, d: 0, e: 1_000, f: 1_000, g: 1_999, h: 2_000 }))
      void acquire(name, {}, { maxWaitMs });
    await settled();
    expect(log).toEqual(['0 a', '0 b', '0 c wait_too_long', '0 d wait_too_long', '0 g wait_too_long']);
    await timers.advance(5_000);
    expect(log.slice(5)).toEqual(['1000 e', '1000 f', '2000 h']);
  });

  it('rejects jobs that came before anything was known, as soon as it is', async () => {
    const { log, acquire } = workerOf({ allMethods: ['2/1s'] });
    const waits = [0, 0, 999, 1_000, 1_000, 1_000, 2_000];
    for (const [i, maxWaitMs] of waits.entries()) void acquire(`${i}`, {}, { maxWaitMs });
    await settled();
    expect(log).toEqual(['0 0', '0 1', '0 2 wait_too_long', '0 5 wait_too_long']);
  });

  it('counts the longer window as well, and allows for an instance that may end at any moment', async () => {
    const { log, acquire } = workerOf({ allMethods: ['1/1s', '3/1m'] });
    // The instance of a minute started with the first job, but the worker does not know what else is charged to it.
    for (let i = 0; i < 10; i++) void acquire(`${i}`, {}, { maxWaitMs: 30_000 });
    await settled();
    expect(log).toEqual(['0 0', '0 7 wait_too_long', '0 8 wait_too_long', '0 9 wait_too_long']);
  });

  it('the error says how long the wait would be', async () => {
    const { worker } = workerOf({ allMethods: ['1/1s'] });
    await worker.acquire(SUBJECT);
    await expect(worker.acquire(SUBJECT, { maxWaitMs: 500 })).rejects.toMatchObject({
      name: 'WaitTooLongError',
      waitMs: 1_000,
      maxWaitMs: 500,
      message: 'the job must wait at least 1000 ms more, and so longer than its maxWaitMs of 500 ms',
    });
  });

  it('a job that others overtook, from another process, is rejected when it knows', async () => {
    const { timers, limiter, log, acquire } = workerOf({ allMethods: ['1/1s'] });
    await acquire('a');
    // The other process asks first at the end of the window.
    timers.after(1_000, () => void limiter.consumeSync(SUBJECT), false);
    void acquire('b', {}, { maxWaitMs: 1_500 });
    await timers.advance(1_000);
    expect(log).toEqual(['0 a', '1000 b wait_too_long']);
  });

  it('if the first job gives up, a cheaper one that fits is served at once', async () => {
    const { log, acquire } = workerOf({ allMethods: ['5/1s'] });
    const abort = new AbortController();
    void acquire('a', { cost: 3 });
    void acquire('b', { cost: 3 }, { signal: abort.signal });
    void acquire('c', { cost: 2 });
    await settled();
    expect(log).toEqual(['0 a']);
    abort.abort(new Error('gone'));
    await settled();
    expect(log).toEqual(['0 a', '0 b gone', '0 c']);
  });

  it('the same if the first job would wait too long', async () => {
    const { log, acquire } = workerOf({ allMethods: ['5/1s'] });
    void acquire('a', { cost: 3 });
    void acquire('b', { cost: 3 }, { maxWaitMs: 10 });
    void acquire('c', { cost: 2 }, { maxWaitMs: 10 });
    await settled();
    expect(log).toEqual(['0 a', '0 b wait_too_long', '0 c']);
  });
});

describe('maxQueue', () => {
  it('bounds the jobs that wait, of all accounts', async () => {
    const { timers, worker, log, acquire } = workerOf({ allMethods: ['1/1s'] }, { maxQueue: 3 });
    await acquire('a');
    for (const name of ['b', 'c', 'd']) void acquire(name);
    void acquire('e', { account: 'acc_2' });
    void acquire('f', { account: 'acc_3' });
    await settled();
    expect(log).toEqual(['0 a', '0 d queue_full', '0 f queue_full', '0 e']);
    expect(worker.waiting).toBe(2);
    await timers.advance(1_000);
    expect(worker.waiting).toBe(1);
    void acquire('g');
    await timers.advance(2_000);
    expect(log.slice(4)).toEqual(['1000 b', '2000 c', '3000 g']);
    expect([worker.waiting, timers.waiting]).toEqual([0, 0]);
  });

  it('however many jobs some accounts add, another account has room', async () => {
    const { timers, worker, log, acquire } = workerOf({ allMethods: ['1/1s'] }, { maxQueue: 100 });
    const flood = (account: string) => Promise.race(Array.from({ length: 200 }, () => acquire(account, { account })));
    for (const [account, waiting] of [
      ['first', 50],
      ['second', 75],
      ['third', 88],
    ] as const) {
      // One of its jobs is accepted at once.
      await acquire('warm-up', { account });
      void flood(account);
      await settled();
      expect(worker.waiting, account).toBe(waiting);
    }
    for (let second = 1; second <= 60; second++) {
      for (const account of ['first', 'second', 'third']) void flood(account);
      void acquire(`small ${second}`, { account: 'small', route: `${second}` });
      await timers.advance(1_000);
    }
    expect(log.filter((line) => line.includes('small'))).toEqual(
      Array.from({ length: 60 }, (_, second) => `${second * 1_000} small ${second + 1}`),
    );
    await timers.advance(100_000);
    expect([worker.waiting, timers.waiting]).toEqual([0, 0]);
  });

  it('the error says whose jobs wait', async () => {
    const { worker } = workerOf({ allMethods: ['1/1h'] }, { maxQueue: 2 });
    const add = (account: string) => worker.acquire({ ...SUBJECT, account }).catch((error) => error);
    const [, own, , all] = await Promise.all(['a', 'a', 'b', 'c'].map(add));
    expect(own.message).toBe(
      '1 jobs of this account wait already, and it may have no more than there is room left for: ' +
        'add jobs more slowly, or raise maxQueue',
    );
    expect([own.maxQueue, own.waitingOfAccount]).toEqual([2, 1]);
    expect(all.message).toBe('2 jobs wait already: add jobs more slowly, or raise maxQueue');
    expect([all.maxQueue, all.waitingOfAccount]).toEqual([2, 0]);
  });

  it('nothing is left of an account whose jobs are done', async () => {
    const { timers, worker, acquire } = workerOf({ allMethods: ['1/1s'] }, { maxQueue: 20_000 });
    for (let i = 0; i < 5_000; i++)
      void Promise.all([acquire('a', { account: `${i}` }), acquire('b', { account: `${i}` })]);
    await timers.advance(1_000);
    expect([worker.waiting, timers.waiting]).toEqual([0, 0]);
  });
});

describe('an abort', () => {
  it('ends the wait with the reason, and the others keep their order', async () => {
    const { timers, log, acquire } = workerOf({ allMethods: ['1/1s'] });
    const abort = new AbortController();
    void acquire('a');
    void acquire('b', {}, { signal: abort.signal });
    void acquire('c');
    void acquire('d', {}, { signal: abort.signal });
    await settled();
    abort.abort(new Error('gone'));
    await timers.advance(1_000);
    expect(log).toEqual(['0 a', '0 b gone', '0 d gone', '1000 c']);
    await acquire('e', {}, { signal: abort.signal });
    expect(log.at(-1)).toBe('1000 e gone');
  });

  it('is not listened to any more after the job was served', async () => {
    const { timers, acquire } = workerOf({ allMethods: ['1/1s'] });
    const { signal } = new AbortController();
    for (const name of ['a', 'b']) void acquire(name, {}, { signal });
    await settled();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await timers.advance(1_000);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('of every job leaves no timer', async () => {
    const { timers, worker, acquire, log } = workerOf({ allMethods: ['1/1s'] });
    const abort = new AbortController();
    for (let i = 0; i < 10; i++) void acquire(`${i}`, {}, { signal: abort.signal });
    await settled();
    expect(timers.waiting).toBe(1);
    abort.abort(new Error('gone'));
    await settled();
    expect([worker.waiting, timers.waiting, log.length]).toEqual([0, 0, 10]);
  });

  it('while the store decides: the charge goes to the next job, or is refunded', async () => {
    const timers = createFakeTimers(0);
    const memory = createMemoryStore({ clock: timers });
    const limiter = createLimiter({
      store: createDistantStore(memory, timers, () => 5),
      limits: { allMethods: ['1/1m'] },
    });
    const worker = createJobWorker(limiter, { timers });
    const abort = new AbortController();
    const gone = [SUBJECT, { ...SUBJECT, account: 'acc_2' }].map((subject) =>
      worker.acquire(subject, { signal: abort.signal }).catch((error: Error) => error.message),
    );
    const next = worker.acquire(SUBJECT);
    await timers.advance(6);
    abort.abort(new Error('gone'));
    expect(await Promise.all(gone)).toEqual(['gone', 'gone']);
    await timers.advance(20);
    expect((await next).decidedAt).toBe(5);
    expect((await limiter.peek({ ...SUBJECT, account: 'acc_2' }))[0]?.remaining).toBe(1);
  });
});

describe('close()', () => {
  it('rejects every job, refunds what is being charged, and leaves no timer', async () => {
    const timers = createFakeTimers(0);
    const store = createDistantStore(createMemoryStore({ clock: timers }), timers, () => 5);
    const limiter = createLimiter({ store, limits: { allMethods: ['1/1m'] } });
    const worker = createJobWorker(limiter, { timers });
    const jobs = [SUBJECT, SUBJECT, { ...SUBJECT, account: 'acc_2' }].map((subject) =>
      worker.acquire(subject).catch(({ code }) => code),
    );
    await settled();
    const closed = worker.close();
    expect(await Promise.all(jobs)).toEqual(['closed', 'closed', 'closed']);
    await timers.advance(100);
    await closed;
    expect((await limiter.peek(SUBJECT))[0]?.remaining).toBe(1);
    expect([worker.waiting, timers.waiting]).toEqual([0, 0]);
    await expect(worker.acquire(SUBJECT)).rejects.toMatchObject({ code: 'closed' });
  });

  it('of the limiter rejects the jobs as they ask', async () => {
    const { timers, limiter, log, acquire } = workerOf({ allMethods: ['1/1s'] });
    for (const name of ['a', 'b', 'c']) void acquire(name);
    await settled();
    await limiter.close();
    await timers.advance(1_000);
    expect(log).toEqual(['0 a', '1000 b closed', '1000 c closed']);
  });
});

describe('if the store fails', () => {
  /** A store that fails with `policy` while `state.down`. */
  function failing(policy: 'local' | 'admit' | 'refuse') {
    const timers = createFakeTimers(0);
    const memory = createMemoryStore({ clock: timers });
    const failover = createFailover(policy);
    const state = { down: true, calls: 0 };
    const store = decorateStore(memory, {
      consume: (consume) => async (account, route, windowSet, cost) => {
        state.calls++;
        if (!state.down) return consume(account, route, windowSet, cost);
        return failover.decide(account, route, windowSet, cost, new StoreUnavailableError(new Error('down')));
      },
    });
    const worker = createJobWorker(createLimiter({ store, limits: { allMethods: ['1/1h'] } }), { timers });
    return { timers, worker, state };
  }

  it('"refuse": each job gets the error', async () => {
    const { timers, worker } = failing('refuse');
    const jobs = [1, 2, 3].map(() => worker.acquire(SUBJECT).catch(({ code }) => code));
    expect(await Promise.all(jobs)).toEqual(Array(3).fill('store_unavailable'));
    expect(timers.waiting).toBe(0);
  });

  it('"admit": each job gets a degraded decision', async () => {
    const { worker } = failing('admit');
    const decisions = await Promise.all([1, 2, 3].map(() => worker.acquire(SUBJECT)));
    expect(decisions.map(({ accepted, degraded }) => [accepted, degraded])).toEqual(Array(3).fill([true, true]));
  });

  it('"local": jobs wait for the windows of this process, and ask every second whether the store is back', async () => {
    const { timers, worker, state } = failing('local');
    const decisions: Decision[] = [];
    for (let i = 0; i < 2; i++) void worker.acquire(SUBJECT).then((decision) => decisions.push(decision));
    await timers.advance(2_500);
    expect(decisions.map(({ degraded }) => degraded)).toEqual([true]);
    expect(state.calls).toBe(3);
    state.down = false;
    await timers.advance(500);
    expect(decisions.map(({ degraded }) => degraded)).toEqual([true, false]);
  });
});
