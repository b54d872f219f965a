import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from 'headgate-testbed/patience';
import { until } from 'headgate-testbed/redis-server';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Applications } from '../../src/applications/applications.ts';
import type { Database } from '../../src/db/database.ts';
import type { Job } from '../../src/jobs/job.ts';
import { type JobHandler, Queue } from '../../src/jobs/queue.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';

const HOUR_MS = 3_600_000;

describe.each(DATABASES)('jobs on %s', (_, open) => {
  let database: OpenDatabase;
  let db: Database;
  let applicationId: string;
  let now = Date.now();
  const queues: Queue[] = [];
  let logged: string[] = [];

  beforeAll(async () => {
    database = await open();
    db = database.db;
    applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  });
  afterAll(() => database.close());
  beforeEach(() => {
    logged = [];
    return async () => {
      await Promise.all(queues.splice(0).map((queue) => queue.close()));
      await db.deleteFrom('jobs').execute();
    };
  });

  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(line) });

  /** A queue whose handler notes what it does. */
  function makeQueue(handler: Partial<JobHandler> = {}, pollMs?: number) {
    const queue = new Queue(db, () => now, log, { pollMs });
    const done: Job[] = [];
    queue.handle('test', {
      perLane: 2,
      atOnce: 200,
      deadlineMs: 5_000,
      run: async (job) => {
        done.push(job);
        return 'done';
      },
      ...handler,
    });
    queues.push(queue);
    return { queue, done };
  }

  const job = (lane: string, subject: string) => ({ kind: 'test', lane, subject });
  const add = (queue: Queue, ...jobs: ReturnType<typeof job>[]) => queue.add(applicationId, jobs, db);
  const rows = () => db.selectFrom('jobs').selectAll().orderBy('subject').execute();

  test('a job is done soon after its transaction, once, and then its row is gone', async () => {
    const { queue, done } = makeQueue();
    queue.start();
    await db.transaction().execute(async (trx) => {
      await queue.add(applicationId, [job('a', '1')], trx);
      expect(done).toEqual([]);
    });
    await until(() => done.length > 0, 'the job is done');
    const addedAt = expect.any(Date);
    expect(done).toEqual([{ kind: 'test', lane: 'a', subject: '1', applicationId, attempt: 1, addedAt }]);
    await queue.close();
    expect(await rows()).toEqual([]);
  });

  test('a job of a transaction that is rolled back is never done', async () => {
    const { queue, done } = makeQueue();
    const adding = db.transaction().execute(async (trx) => {
      await queue.add(applicationId, [job('a', '1')], trx);
      throw new Error('undo');
    });
    await expect(adding).rejects.toThrow('undo');
    await queue.runDue();
    expect(done).toEqual([]);
  });

  test('a job is retried at the time that its handler names, and its attempts are counted', async () => {
    const attempts: number[] = [];
    const { queue } = makeQueue({
      run: async ({ attempt }) => {
        attempts.push(attempt);
        return attempt < 3 ? { retryInMs: HOUR_MS } : 'done';
      },
    });
    await add(queue, job('a', '1'));
    for (const seen of [[1], [1]]) {
      await queue.runDue();
      expect(attempts).toEqual(seen);
    }
    now += HOUR_MS - 1;
    await queue.runDue();
    expect(attempts).toEqual([1]);
    now += 1;
    await queue.runDue();
    now += HOUR_MS;
    await queue.runDue();
    expect(attempts).toEqual([1, 2, 3]);
    expect(await rows()).toEqual([]);
  });

  test('without other processes, the queue sleeps until a job is due', async () => {
    const attempts: number[] = [];
    const { queue } = makeQueue({
      run: async ({ attempt }) => {
        attempts.push(attempt);
        return attempt === 1 ? { retryInMs: 50 } : 'done';
      },
    });
    const looks = vi.spyOn(db, 'withRecursive');
    queue.start();
    await add(queue, job('a', '1'));
    await until(() => attempts.length === 1, 'the first attempt');
    now += 50;
    await until(() => attempts.length === 2, 'the second attempt');
    // At the start, after the job was added, and after its retry was due; an attempt may end during a look.
    expect(looks.mock.calls.length).toBeLessThanOrEqual(5);
    looks.mockRestore();
  });

  test('a retry is not forgotten if another job of its lane is done meanwhile', async () => {
    const attempts: string[] = [];
    const { queue } = makeQueue({
      run: async ({ subject, attempt }) => {
        attempts.push(`${subject} ${attempt}`);
        return subject === 'failing' && attempt === 1 ? { retryInMs: 500 } : 'done';
      },
    });
    queue.start();
    await add(queue, job('a', 'failing'));
    await until(() => attempts.length === 1, 'the first attempt');
    await add(queue, job('a', 'other'));
    await until(() => attempts.length === 2, 'the other job is done');
    now += 500;
    await until(() => attempts.length === 3, 'the second attempt');
    expect(attempts).toEqual(['failing 1', 'other 1', 'failing 2']);
  });

  test('a new process knows when the retry of a lane is due that contains a due job, too', async () => {
    const earlier = makeQueue({ run: async () => ({ retryInMs: 500 }) });
    await add(earlier.queue, job('a', 'failing'));
    await earlier.queue.runDue();
    await add(earlier.queue, job('a', 'other'));
    const { queue, done } = makeQueue();
    queue.start();
    await until(() => done.length === 1, 'the other job is done');
    now += 500;
    await until(() => done.length === 2, 'the retry is done');
  });

  test('more due lanes than are read at once are all done, also beside lanes without a handler', async () => {
    const attempts: string[] = [];
    const { queue } = makeQueue({
      run: async ({ lane }) => {
        attempts.push(lane);
        return { retryInMs: HOUR_MS };
      },
    });
    const newer = Array.from({ length: 600 }, (_, i) => ({ kind: 'newer', lane: `newer ${i}`, subject: '1' }));
    await queue.add(applicationId, newer, db);
    now += 1;
    await add(queue, ...Array.from({ length: 600 }, (_, i) => job(`lane ${i}`, '1')));
    queue.start();
    await until(() => attempts.length === 600, 'all lanes are done');
    await until(async () => (await rows()).every((row) => !row.is_taken), 'the last attempt is stored');
    // That many lanes which are not yet due keep the queue asleep.
    const looks = vi.spyOn(db, 'withRecursive');
    await add(queue, job('later', '1'));
    await until(() => attempts.includes('later'), 'the later lane is done');
    await pause(300);
    expect(looks.mock.calls.length).toBeLessThan(5);
    looks.mockRestore();
  });

  test('a handler that throws is logged, and the job is tried again in a minute', async () => {
    let calls = 0;
    const { queue } = makeQueue({
      run: async () => {
        calls += 1;
        if (calls === 1) throw new Error('broken');
        return 'done';
      },
    });
    await add(queue, job('a', '1'));
    await queue.runDue();
    expect(logged.join('')).toContain('broken');
    now += 60_000;
    await queue.runDue();
    expect(calls).toBe(2);
  });

  test('a handler that hangs is cut off at its deadline, also if it ignores the signal', async () => {
    const reasons: unknown[] = [];
    const { queue } = makeQueue({
      deadlineMs: 50,
      run: (_, signal) => {
        signal.addEventListener('abort', () => reasons.push((signal.reason as Error).name));
        return new Promise(() => undefined);
      },
    });
    await add(queue, job('a', '1'));
    await queue.runDue();
    expect(reasons).toEqual(['TimeoutError']);
    expect(await rows()).toMatchObject([{ attempt: 1, is_taken: false, next_at: new Date(now + 60_000) }]);
  });

  test('a lane has a bound, and a lane that is slow delays no other', async () => {
    let slow = 0;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const done: string[] = [];
    const { queue } = makeQueue({
      run: async ({ lane, subject }) => {
        if (lane === 'slow') {
          slow += 1;
          await released;
        }
        done.push(subject);
        return 'done';
      },
    });
    await add(queue, ...Array.from({ length: 300 }, (_, i) => job('slow', `slow ${i}`)));
    await add(queue, ...Array.from({ length: 20 }, (_, i) => job(`fast ${i}`, `fast ${i}`)));
    queue.start();
    await until(() => done.length === 20 && slow === 2, 'the other lanes are done');
    expect(done.every((subject) => subject.startsWith('fast'))).toBe(true);
    // A job that is added while the slow lane is full is done, too.
    await add(queue, job('later', 'later'));
    await until(() => done.includes('later'), 'the later lane is done');
    expect(slow).toBe(2);
    release();
    await until(() => done.length === 321, 'the slow lane is done');
  });

  test('applications whose jobs all hang delay neither other applications nor other kinds of jobs', async () => {
    const applications = new Applications(db, Date.now);
    const [hanging1, hanging2, other] = await Promise.all(
      ['Hanging 1', 'Hanging 2', 'Other'].map((name) => applications.create(name, 'development')),
    );
    const hung: Job[] = [];
    let release = (_: 'done'): void => undefined;
    const released = new Promise<'done'>((resolve) => {
      release = resolve;
    });
    const { queue, done } = makeQueue({
      atOnce: 12,
      run: async (each) => {
        if (!each.lane.startsWith('hanging')) {
          done.push(each);
          return 'done';
        }
        hung.push(each);
        return released;
      },
    });
    let copies = 0;
    queue.handle('other kind', {
      ...{ perLane: 1, atOnce: 12, deadlineMs: 5_000 },
      run: async () => {
        copies += 1;
        return 'done';
      },
    });
    const lanes = (name: string, count: number) =>
      Array.from({ length: count }, (_, i) => [job(`${name} ${i}`, '1'), job(`${name} ${i}`, '2')]).flat();
    await queue.add(hanging1?.id ?? '', lanes('hanging 1', 50), db);
    await queue.add(hanging2?.id ?? '', lanes('hanging 2', 50), db);
    queue.start();
    const hungOf = (application = hanging1) => hung.filter((each) => each.applicationId === application?.id).length;
    await until(() => hungOf(hanging1) === 4 && hungOf(hanging2) === 4, 'both have taken their shares');
    for (const name of ['first', 'second', 'third']) {
      // Before they are added: some may be done before the next statement ends.
      const count = done.length + 10;
      await queue.add(other?.id ?? '', lanes(name, 5), db);
      await queue.add(hanging1?.id ?? '', [{ kind: 'other kind', lane: name, subject: '1' }], db);
      await until(() => done.length === count, 'the other application is served');
    }
    await until(() => copies === 3, 'the other kind is served');
    expect(hung).toHaveLength(8);
    // Otherwise the queue would wait for them until it aborts them.
    const closed = queue.close();
    release('done');
    await closed;
  });

  test('jobs of a lane are done together: each has its outcome, and one without time left counts no attempt', async () => {
    const began: string[] = [];
    const time = vi.spyOn(performance, 'now').mockReturnValue(0);
    onTestFinished(() => time.mockRestore());
    const { queue } = makeQueue({
      perLane: 1,
      together: 5,
      deadlineMs: HOUR_MS,
      run: async ({ subject, attempt }) => {
        began.push(subject);
        expect(attempt).toBe(1);
        if (began.length === 3) time.mockReturnValue(HOUR_MS / 2 + 1);
        return began.length === 1 ? { retryInMs: HOUR_MS } : 'done';
      },
    });
    await add(queue, ...['1', '2', '3', '4'].map((subject) => job('a', subject)));
    await queue.runDue();
    const [retried, , , late] = [...began, ...['1', '2', '3', '4'].filter((subject) => !began.includes(subject))];
    const left = await rows();
    expect(left).toHaveLength(2);
    expect(left).toContainEqual(
      expect.objectContaining({ subject: retried, attempt: 1, is_taken: false, next_at: new Date(now + HOUR_MS) }),
    );
    expect(left).toContainEqual(
      expect.objectContaining({ subject: late, attempt: 0, is_taken: false, next_at: new Date(now) }),
    );
    await queue.runDue();
    expect(began[3]).toBe(late);
    expect(await rows()).toHaveLength(1);
  });

  test('several processes share the jobs, and each job is done once', async () => {
    const counts = new Map<string, number>();
    const run = async ({ subject }: Job) => {
      counts.set(subject, (counts.get(subject) ?? 0) + 1);
      return 'done' as const;
    };
    const all = [makeQueue({ run }, 50), makeQueue({ run }, 50), makeQueue({ run }, 50)];
    for (const { queue } of all) queue.start();
    const [first] = all;
    const jobs = Array.from({ length: 200 }, (_, i) => job(`lane ${i % 5}`, String(i)));
    if (first !== undefined) await add(first.queue, ...jobs);
    await until(() => counts.size === 200, 'all jobs are done');
    await Promise.all(all.map(({ queue }) => queue.close()));
    expect([...counts.values()].every((count) => count === 1)).toBe(true);
    expect(await rows()).toEqual([]);
  });

  test('the job of a process that died is taken by another one when its deadline is certainly over', async () => {
    let release = (): void => undefined;
    const released = new Promise<'done'>((resolve) => {
      release = () => resolve('done');
    });
    const hung = makeQueue({ run: () => released, deadlineMs: HOUR_MS });
    await add(hung.queue, job('a', '1'));
    void hung.queue.runDue();
    await until(async () => (await rows()).some((row) => row.is_taken), 'the job is taken');
    const { queue, done } = makeQueue();
    now += HOUR_MS;
    await queue.runDue();
    expect(done).toEqual([]);
    now += 10_000;
    await queue.runDue();
    expect(done).toMatchObject([{ subject: '1', attempt: 2 }]);
    release();
  });

  test('an attempt that ends after another process has taken its job changes nothing', async () => {
    let end = (): void => undefined;
    const slow = makeQueue({
      run: () =>
        new Promise((resolve) => {
          end = () => resolve('done');
        }),
    });
    await add(slow.queue, job('a', '1'));
    const ended = slow.queue.runDue();
    await until(async () => (await rows()).some((row) => row.is_taken), 'the job is taken');
    now += HOUR_MS;
    const { queue } = makeQueue({ run: async () => ({ retryInMs: HOUR_MS }) });
    await queue.runDue();
    end();
    await ended;
    expect(await rows()).toMatchObject([{ attempt: 2, is_taken: false }]);
  });

  test('a job that waits is not added twice: it is due now, and counts its attempts anew', async () => {
    const attempts: number[] = [];
    const { queue } = makeQueue({
      run: async ({ attempt }) => {
        attempts.push(attempt);
        return { retryInMs: HOUR_MS };
      },
    });
    await add(queue, job('a', '1'));
    await queue.runDue();
    await add(queue, job('a', '1'), job('a', '2'));
    await queue.runDue();
    expect(attempts).toEqual([1, 1, 1]);
    expect(await rows()).toHaveLength(2);
  });

  test('jobs of a kind without a handler wait, and jobs of a cleared lane are gone', async () => {
    const { queue, done } = makeQueue();
    await queue.add(applicationId, [{ kind: 'newer', lane: 'a', subject: '1' }, job('b', '2')], db);
    await queue.table.clear(applicationId, 'test', 'b', db);
    await queue.runDue();
    expect(done).toEqual([]);
    expect(await rows()).toMatchObject([{ kind: 'newer', attempt: 0 }]);
  });

  test('a queue that closes gives back what does not end in time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { queue } = makeQueue({ run: () => new Promise(() => undefined), deadlineMs: HOUR_MS });
      await add(queue, job('a', '1'), job('a', '2'), job('a', '3'));
      void queue.runDue();
      await waitFor(async () => expect((await rows()).filter((row) => row.is_taken)).toHaveLength(2));
      const closed = queue.close();
      await vi.advanceTimersByTimeAsync(5_000);
      await closed;
    } finally {
      vi.useRealTimers();
    }
    const left = { is_taken: false, next_at: new Date(now) };
    expect(await rows()).toMatchObject([left, left, left]);
    expect(logged).toEqual([]);
  });

  test('a database that is away is logged, and asked again', async () => {
    const { queue, done } = makeQueue();
    const away = vi.spyOn(db, 'withRecursive').mockImplementationOnce(() => {
      throw new Error('the database is away');
    });
    queue.start();
    await add(queue, job('a', '1'));
    await until(() => done.length === 1, 'the job is done');
    expect(logged.join('')).toContain('the database is away');
    away.mockRestore();
  });
});
