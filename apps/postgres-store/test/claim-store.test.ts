import fc from 'fast-check';
import { claimStoreSuite } from 'headgate/testing';
import { describe, it } from 'vitest';
import { createPostgresClaimStore } from '../src/index.ts';
import { migratedPool } from './support/pool.ts';

const pool = await migratedPool('claims');

claimStoreSuite({ describe, it }, fc, {
  name: 'PostgreSQL',
  create: async (clock) => {
    await pool.query('delete from claims.claims');
    return createPostgresClaimStore(pool, { schema: 'claims', clock });
  },
  histories: 40,
});
