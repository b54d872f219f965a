import { inject } from 'vitest';
import { type Database, openEmbedded, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createTestDatabase } from './test-database.ts';

/** Databases with the schema of the service, each of its own. A test of a store runs on each kind. */
export const DATABASES: readonly (readonly [kind: string, open: () => Promise<OpenDatabase>])[] = [
  [
    'PGlite',
    async () => {
      const db = await openEmbedded('memory://');
      await migrate(db);
      return { db, close: () => db.destroy() };
    },
  ],
  [
    'PostgreSQL',
    async () => {
      const { url, drop } = await createTestDatabase(undefined, inject('postgres').port);
      const db = openServer(url, () => undefined);
      await migrate(db);
      return {
        db,
        close: async () => {
          await db.destroy();
          await drop();
        },
      };
    },
  ],
];

export interface OpenDatabase {
  readonly db: Database;
  close(): Promise<void>;
}
