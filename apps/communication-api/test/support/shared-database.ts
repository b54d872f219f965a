import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { Applications } from '../../src/applications/applications.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { Keys } from '../../src/keys/keys.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { cleanUpLater } from './clean-up.ts';
import { createTestDatabase } from './test-database.ts';

/** A migrated database on PostgreSQL for processes that a test starts, with an application. */
export interface SharedDatabase {
  /** The variables of its processes. */
  readonly environment: Record<string, string>;
  readonly db: Database;
  readonly envelope: Envelope;
  readonly applicationId: string;
  /** A key of the application. */
  readonly token: string;
}

/** Makes a database without a process. It is dropped after the test file. */
export async function makeSharedDatabase(): Promise<SharedDatabase> {
  const { url, drop } = await createTestDatabase(undefined, inject('postgres').port);
  cleanUpLater(drop);
  const environment = {
    DATABASE_URL: url,
    SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    EGRESS_POLICY: 'off',
  };
  const db = openServer(url, () => undefined);
  cleanUpLater(() => db.destroy());
  await migrate(db);
  const applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  const key = { name: 'k', role: 'service', scopeId: null, expiresAt: new Date(Date.now() + 3_600_000) } as const;
  const { token } = await new Keys(db, Date.now, { warn: () => undefined }).create(applicationId, 'development', key);
  const envelope = new Envelope(readConfig(environment).SECRET_KEYS ?? []);
  return { environment, db, envelope, applicationId, token };
}
