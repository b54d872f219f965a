/** S28, S29, S31, S33: groups, units, lanes and requests in flight together in PostgreSQL. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { expectJoined, joinedHistories, joinedLimits } from '../../support/joined-histories.ts';
import { migrated, newPool } from '../../support/postgres.ts';

const SCHEMA = 'joined';
const pool = newPool();
const isMigrated = migrated(pool, SCHEMA);

it('in PostgreSQL, a request fits everything or changes nothing', async () => {
  await isMigrated;
  await fc.assert(
    fc.asyncProperty(joinedHistories, async (history) => {
      await pool.query(`truncate "${SCHEMA}".counters, "${SCHEMA}".blocks, "${SCHEMA}".receipts, "${SCHEMA}".slots`);
      const clock = createFakeClock(1_000_000);
      const store = createPostgresStore(pool, { schema: SCHEMA, clock, deadlineMs: 120_000 });
      const limiter = createLimiter({ store, limits: joinedLimits(history), validate: false });
      await expectJoined(history, limiter, clock, 20);
      await limiter.close();
    }),
    { numRuns: NIGHTLY ? 200 : 6 },
  );
});
