import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { runDoctor } from '../../src/cli/doctor.ts';
import { readConfig } from '../../src/config.ts';
import { connectRedis } from '../../src/limits/redis.ts';
import { createService } from '../../src/service.ts';
import { linkAccount } from '../support/accounts.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { openTestDatabase } from '../support/databases.ts';

const log = pino({ level: 'silent' });

test('the doctor does no work of a service: what is due stays due', async () => {
  const { db, url, close } = await openTestDatabase('PostgreSQL');
  cleanUpLater(close);
  const config = readConfig({
    DATABASE_URL: url,
    SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
    PORT: '0',
  });
  const masterKeys = config.SECRET_KEYS ?? [];
  const { rooms, ...service } = await createService({ config, db, masterKeys, log, worksInBackground: false });
  const { id: applicationId } = await rooms.applications.create('Test', 'development');
  await rooms.endpoints.create(applicationId, {
    ...{ url: 'https://hooks.example/a', triggerEvents: ['*'], accountIds: null, description: null, enabled: true },
  });
  await linkAccount(rooms, applicationId);
  await service.close();
  const jobs = () => db.selectFrom('jobs').selectAll().execute();
  const before = await jobs();
  expect(before.length).toBeGreaterThan(0);
  const printed: string[] = [];
  const terminal = { out: (text: string) => void printed.push(text), error: (text: string) => void printed.push(text) };
  expect({ code: await runDoctor(config, terminal, log), printed }).toMatchObject({ code: 0 });
  expect(await jobs()).toEqual(before);
});

test('a Redis server that is frozen does not keep the service from starting', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const redis = await connectRedis(`redis://127.0.0.1:${port}`, log, 50);
  expect(redis.status).not.toBe('ready');
  redis.disconnect();
  server.close();
});
