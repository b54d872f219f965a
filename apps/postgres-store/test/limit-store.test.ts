import fc from 'fast-check';
import { limitStoreSuite } from 'headgate/testing';
import pg from 'pg';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { createPostgresStore, migrate } from '../src/index.ts';

const pool = new pg.Pool({ connectionString: inject('postgresStore').url });
beforeAll(() => migrate(pool, { schema: 'limits' }));
afterAll(() => pool.end());

limitStoreSuite({ describe, it }, fc, {
  name: 'PostgreSQL',
  create: async (clock) => {
    await pool.query('delete from limits.counters; delete from limits.blocks');
    return createPostgresStore(pool, { schema: 'limits', clock });
  },
  histories: 100,
});
