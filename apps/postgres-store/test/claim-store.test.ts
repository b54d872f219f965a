import fc from 'fast-check';
import { claimStoreSuite } from 'headgate/testing';
import pg from 'pg';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { createPostgresClaimStore, migrate } from '../src/index.ts';

const pool = new pg.Pool({ connectionString: inject('postgresStore').url });
beforeAll(() => migrate(pool, { schema: 'claims' }));
afterAll(() => pool.end());

claimStoreSuite({ describe, it }, fc, {
  name: 'PostgreSQL',
  create: async (clock) => {
    await pool.query('delete from claims.claims');
    return createPostgresClaimStore(pool, { schema: 'claims', clock });
  },
  histories: 100,
});
