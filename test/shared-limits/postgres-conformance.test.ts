import fc from 'fast-check';
import { describe, it } from 'vitest';
import { createPostgresAdjustments } from '../../src/postgres.ts';
import { databaseOf } from '../../src/stores/postgres/client.ts';
import { adjustmentStoreSuite } from '../support/adjustment-suite/suite.ts';
import { CLIENTS, migrated } from '../support/postgres.ts';
import { histories } from '../support/redis-conformance.ts';

const TABLES = ['adjustment_head', 'adjustments', 'adjustment_history', 'adjustment_processes'];

for (const [name, create] of Object.entries(CLIENTS)) {
  const schema = `conformance_${name.replace(/\W/g, '_')}`;
  const client = create();
  const ready = migrated(client, schema);
  // In one statement, because each history begins with it.
  const clear = TABLES.map((table) => `delete from "${schema}".${table};`).join('');
  adjustmentStoreSuite({ describe, it }, fc, {
    name,
    async create(clock) {
      await ready;
      await databaseOf('client', client).query(clear, []);
      return createPostgresAdjustments(client, { schema, clock, deadlineMs: 10_000, logger: false });
    },
    histories: histories(30),
  });
}
