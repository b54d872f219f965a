/** S28: lanes in PostgreSQL, with the cache of rejections and without. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { expectLanes, laneHistories, limitsOf } from '../../support/lane-histories.ts';
import { migrated, newPool } from '../../support/postgres.ts';

const SCHEMA = 'lanes';
const pool = newPool();
const isMigrated = migrated(pool, SCHEMA);
const RUNS = NIGHTLY ? 300 : 12;

it.each([true, false])('S28: random histories are as the model says (with a fake clock: %s)', async (isTimed) => {
  await isMigrated;
  let hits = 0;
  await fc.assert(
    fc.asyncProperty(laneHistories(isTimed), async (history) => {
      await pool.query(`truncate "${SCHEMA}".counters, "${SCHEMA}".blocks, "${SCHEMA}".receipts`);
      const clock = isTimed ? createFakeClock(1_000_000) : undefined;
      const store = createPostgresStore(pool, { schema: SCHEMA, deadlineMs: 120_000, ...(clock && { clock }) });
      const limiter = createLimiter({ store, limits: limitsOf(history), validate: false });
      await expectLanes(history, { limiter, adjust: limiter.adjust.bind(limiter) }, clock);
      hits += store.stats().localRejections;
    }),
    { numRuns: RUNS },
  );
  expect(hits > 0).toBe(!isTimed);
});
