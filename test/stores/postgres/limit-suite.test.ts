import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { describe, it } from 'vitest';
import { databaseOf } from '../../../src/stores/postgres/client.ts';
import { createPostgresStore } from '../../../src/stores/postgres/limits.ts';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { CLIENTS, migrated } from '../../support/postgres.ts';

const HISTORIES: Readonly<Record<string, number>> = NIGHTLY
  ? { pg: 500, 'postgres.js': 100, PGlite: 100 }
  : { pg: 30, 'postgres.js': 8, PGlite: 8 };

for (const [name, create] of Object.entries(CLIENTS)) {
  const client = create();
  const schema = `limits-${name.replace('.', '-')}`;
  const isMigrated = migrated(client, schema);
  limitStoreSuite({ describe, it }, fc, {
    name: `PostgreSQL by ${name}`,
    create: async (clock) => {
      await isMigrated;
      const text = `truncate "${schema}".counters, "${schema}".blocks, "${schema}".receipts, "${schema}".slots`;
      await databaseOf('client', client).query(text, []);
      return createPostgresStore(client, { schema, clock, deadlineMs: 120_000 });
    },
    histories: HISTORIES[name] ?? 0,
  });
}
