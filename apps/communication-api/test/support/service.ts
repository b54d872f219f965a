import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { type Database, openEmbedded, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { Environment, Role } from '../../src/domain/key-token.ts';
import { createService, type Service, type ServiceParts } from '../../src/service.ts';

const YEAR_MS = 31_536_000_000;

/** A running service for a test file, with a database of its own. */
export interface TestService extends Service {
  readonly db: Database;
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  /** A new application with a service key, and a way to make other keys. */
  application(environment?: Environment): Promise<TestApplication>;
}

export interface TestApplication {
  readonly id: string;
  readonly token: string;
  key(role: Role, scopeId?: string): Promise<string>;
}

/**
 * Starts a service on PostgreSQL embedded in memory, or on the server of DATABASE_URL. It ends after the test file.
 * @param parts replace those of the running service
 */
export async function startService(
  environment: Readonly<Record<string, string>> = {},
  parts: Pick<ServiceParts, 'clock' | 'log' | 'providers'> = {},
): Promise<TestService> {
  const masterKey = randomBytes(32).toString('base64');
  const config = readConfig({ SECRET_KEYS: `k1:${masterKey}`, LOG_LEVEL: 'silent', PORT: '0', ...environment });
  const db =
    config.DATABASE_URL === undefined
      ? await openEmbedded('memory://')
      : openServer(config.DATABASE_URL, () => undefined);
  await migrate(db);
  const service = await createService({
    config,
    db,
    masterKeys: config.SECRET_KEYS ?? [],
    log: pino({ level: config.LOG_LEVEL }),
    ...parts,
  });
  await service.app.listen({ port: config.PORT, host: '127.0.0.1' });
  const { port } = service.app.server.address() as AddressInfo;
  afterAll(async () => {
    await service.close();
    await db.destroy();
  });
  const { applications, keys } = service.rooms;
  return {
    ...service,
    db,
    url: `http://127.0.0.1:${port}`,
    application: async (kind = 'development') => {
      const { id } = await applications.create('Test', kind);
      const key = async (role: Role, scopeId?: string): Promise<string> =>
        (
          await keys.create(id, kind, {
            name: role,
            role,
            scopeId: scopeId ?? null,
            expiresAt: new Date(Date.now() + YEAR_MS),
          })
        ).token;
      return { id, token: await key('service'), key };
    },
  };
}
