import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { Clock } from '../domain/clock.ts';
import type { DeleteWithJobs, EndedJob, Job, NewJob, PendingJob } from './job.ts';

/** Jobs of one kind that are done in turn. */
export type Lane = Pick<NewJob, 'kind' | 'lane'>;

/** The jobs of one kind, of all applications. */
export interface Backlog {
  readonly kind: string;
  /** How many are not done. */
  readonly jobs: number;
  /** The longest time that a job has been due, in milliseconds. */
  readonly overdueMs: number;
}

/** Lanes per look. */
export const LANES_AT_ONCE = 500;

/** The rows of jobs. A row is deleted when its job is done. An attempt takes the row until its time is over. */
export class JobTable {
  constructor(
    private readonly db: Database,
    private readonly clock: Clock,
  ) {}

  /**
   * Adds jobs, in the transaction of their subject. A job that already waits becomes due now, and its attempts are
   * counted anew; a running job stays as it is.
   * @param db the transaction, or a statement that was begun with `with`: its parts are executed with this statement
   */
  async add(applicationId: string, jobs: readonly NewJob[], db: Pick<Database, 'insertInto'>): Promise<void> {
    if (jobs.length === 0) return;
    const now = new Date(this.clock());
    await db
      .insertInto('jobs')
      .values(
        jobs.map(({ kind, lane, subject }) => ({
          ...{ kind, lane, subject, application_id: applicationId },
          ...{ next_at: now, created_at: now },
        })),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['kind', 'lane', 'subject'])
          .doUpdateSet({ next_at: now, attempt: 0 })
          .where('jobs.is_taken', '=', false),
      )
      .execute();
  }

  /** Deletes the jobs of a lane that are not being done at this moment. */
  async clear(applicationId: string, kind: string, lane: string, db: Database): Promise<void> {
    await db
      .deleteFrom('jobs')
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .where('is_taken', '=', false)
      .execute();
  }

  /** A job, unless it is done. */
  async find(applicationId: string, { kind, lane, subject }: NewJob): Promise<PendingJob | undefined> {
    return this.db
      .selectFrom('jobs')
      .select(['attempt', 'is_taken as isTaken', 'next_at as nextAt'])
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .where('subject', '=', subject)
      .executeTakeFirst();
  }

  /** How many jobs of a lane are not done. */
  async count(applicationId: string, kind: string, lane: string): Promise<number> {
    const { count } = await this.db
      .selectFrom('jobs')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** The jobs that are not done, per kind with jobs. */
  async backlogs(): Promise<readonly Backlog[]> {
    const now = this.clock();
    const rows = await this.db
      .selectFrom('jobs')
      .select(({ fn, eb }) => [
        'kind',
        fn.countAll<string>().as('jobs'),
        // The `next_at` of a running job is the end of its attempt, so the job is not due before, unless its process
        // died.
        fn
          .min('next_at')
          .filterWhere(eb.or([eb('is_taken', '=', false), eb('next_at', '<=', new Date(now))]))
          .as('due'),
      ])
      .groupBy('kind')
      .execute();
    return rows.map(({ kind, jobs, due }) => {
      const since: Date | null = due;
      return { kind, jobs: Number(jobs), overdueMs: since === null ? 0 : Math.max(0, now - since.getTime()) };
    });
  }

  /**
   * For each lane, when its next job is due; the earliest lane comes first, of all applications. The query steps
   * through the index from lane to lane, so its time does not depend on the number of jobs in a lane.
   * @param kinds only lanes of these kinds
   * @param except not these lanes: known lanes must not hide the others, because at most {@link LANES_AT_ONCE} are read
   */
  async lanes(kinds: readonly string[], except: readonly Lane[]) {
    return this.db
      .withRecursive('lanes', (db) =>
        db
          .selectFrom((from) =>
            from
              .selectFrom('jobs')
              .select(['kind', 'lane', 'application_id', 'next_at'])
              .orderBy('kind')
              .orderBy('lane')
              .orderBy('next_at')
              .limit(1)
              .as('first'),
          )
          .select(['first.kind', 'first.lane', 'first.application_id', 'first.next_at'])
          .unionAll((union) =>
            union
              .selectFrom('lanes')
              .innerJoinLateral(
                (from) =>
                  from
                    .selectFrom('jobs')
                    .select(['jobs.kind', 'jobs.lane', 'jobs.application_id', 'jobs.next_at'])
                    .where(sql<boolean>`(jobs.kind, jobs.lane) > (lanes.kind, lanes.lane)`)
                    .orderBy('jobs.kind')
                    .orderBy('jobs.lane')
                    .orderBy('jobs.next_at')
                    .limit(1)
                    .as('next'),
                (join) => join.onTrue(),
              )
              .select(['next.kind', 'next.lane', 'next.application_id', 'next.next_at']),
          ),
      )
      .selectFrom('lanes')
      .selectAll()
      .where('kind', '=', sql<string>`any(${kinds}::text[])`)
      .where(
        sql<boolean>`(kind, lane) not in (
          select * from unnest(${except.map(({ kind }) => kind)}::text[], ${except.map(({ lane }) => lane)}::text[]))`,
      )
      .orderBy('next_at')
      .limit(LANES_AT_ONCE)
      .execute();
  }

  /** After which time the next job of a lane is due, in milliseconds. Undefined if the lane is empty. */
  async dueIn(applicationId: string, { kind, lane }: Lane): Promise<number | undefined> {
    const row = await this.db
      .selectFrom('jobs')
      .select('next_at')
      .where('application_id', '=', applicationId)
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      .orderBy('next_at')
      .limit(1)
      .executeTakeFirst();
    return row && row.next_at.getTime() - this.clock();
  }

  /**
   * Takes due jobs of a lane, unless other processes took all of them.
   * @param forMs how long the jobs belong to this attempt, in milliseconds
   * @param most how many
   */
  async take({ kind, lane }: Lane, forMs: number, most: number): Promise<readonly Job[]> {
    const now = this.clock();
    const rows = await this.db
      .updateTable('jobs')
      .set(({ eb }) => ({
        is_taken: true,
        attempt: eb('attempt', '+', 1),
        next_at: new Date(now + forMs),
      }))
      .where('kind', '=', kind)
      .where('lane', '=', lane)
      // An array is made once. A plan may execute a plain subquery again, and so take more.
      .where(
        'subject',
        '=',
        (db) =>
          sql<string>`any(array(${db
            .selectFrom('jobs')
            .select('subject')
            .where('kind', '=', kind)
            .where('lane', '=', lane)
            .where('next_at', '<=', new Date(now))
            .orderBy('next_at')
            .limit(most)
            .forUpdate()
            .skipLocked()}))`,
      )
      .returning(['application_id', 'subject', 'attempt', 'created_at'])
      .execute();
    return rows.map(({ subject, application_id: applicationId, attempt, created_at: addedAt }) => ({
      ...{ kind, lane, subject, applicationId, attempt, addedAt },
    }));
  }

  /** Changes no job that another process took since, because this one was too slow. */
  async settle(ended: readonly EndedJob[], deleteWith: DeleteWithJobs = (db) => db): Promise<void> {
    const done = ended.filter(({ outcome }) => outcome === 'done').map(({ job }) => job);
    const [first] = done;
    if (first !== undefined) {
      const { applicationId, kind, lane } = first;
      const subjects = done.map(({ subject }) => subject);
      await deleteWith(this.db, applicationId, subjects)
        .deleteFrom('jobs')
        .where('application_id', '=', applicationId)
        .where('kind', '=', kind)
        .where('lane', '=', lane)
        .where(
          sql<boolean>`(subject, attempt) in (
            select * from unnest(${subjects}::text[], ${done.map(({ attempt }) => attempt)}::int[]))`,
        )
        .execute();
    }
    for (const { job, outcome } of ended) {
      if (outcome === 'done') continue;
      const { applicationId, kind, lane, subject, attempt } = job;
      const [next, waitMs] = outcome === 'not begun' ? [attempt - 1, 0] : [attempt, outcome.retryInMs];
      await this.db
        .updateTable('jobs')
        .set({ is_taken: false, attempt: next, next_at: new Date(this.clock() + waitMs) })
        .where((row) => row.and({ application_id: applicationId, kind, lane, subject, attempt }))
        .execute();
    }
  }
}
