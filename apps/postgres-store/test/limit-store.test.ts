import fc from 'fast-check';
import { limitStoreSuite } from 'headgate/testing';
import { describe, it } from 'vitest';
import { createPostgresStore } from '../src/index.ts';
import { migratedPool } from './support/pool.ts';

const pool = await migratedPool('limits');

limitStoreSuite({ describe, it }, fc, {
  name: 'PostgreSQL',
  create: async (clock) => {
    await pool.query('delete from limits.counters; delete from limits.blocks');
    return createPostgresStore(pool, { schema: 'limits', clock });
  },
  histories: 50,
});
