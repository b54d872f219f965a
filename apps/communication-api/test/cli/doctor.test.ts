import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { runDoctor } from '../../src/cli/doctor.ts';
import { readConfig } from '../../src/config.ts';
import { connectRedis } from '../../src/limits/redis.ts';
import { createService } from '../../src/service.ts';
import { linkAccount } from '../support/accounts.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { openTestDatabase } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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
  const { rooms, ...service } = await createService({ config, db, masterKeys, log, isRunning: false });
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

test('the doctor makes the first page of every provider, also of plug-ins, and says which cannot be made', async () => {
  const folder = temporaryFolder();
  const plugin = (name: string, code: string): string => {
    const file = join(folder, `${name}.mjs`);
    writeFileSync(file, code);
    return file;
  };
  const form = "{ kind: 'form', name: 'start', title: { en: 'Link', de: 'Verbinden' }, fields: [] }";
  const provider = (name: string, begin: string, step = form): string =>
    plugin(
      name,
      `export const createProvider = () => ({ name: '${name}', title: 'Test', supports: new Set(['messaging']),
        link: { begin: async () => { ${begin} }, stepOf: () => (${step}), submit: async () => ({ kind: 'invalid', faults: [] }) } });`,
    );
  const port = await freePort();
  const { url, close } = await openTestDatabase('PostgreSQL');
  cleanUpLater(close);
  const config = readConfig({
    ...{ DATABASE_URL: url, SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`, PORT: '0', EGRESS_POLICY: 'off' },
    PROVIDERS: [
      provider('telegram', 'return {}'),
      provider('whatsapp', "throw new Error('no answer from the messenger')"),
      provider('instagram', 'return {}', form.replace("de: 'Verbinden'", '')),
    ].join(','),
    ...{ GOOGLE_CLIENT_ID: 'id', GOOGLE_CLIENT_SECRET: 'secret', GOOGLE_ISSUER: `http://127.0.0.1:${port}` },
  });
  const printed: string[] = [];
  const terminal = { out: (text: string) => void printed.push(text), error: (text: string) => void printed.push(text) };
  expect(await runDoctor(config, terminal, log)).toBe(1);
  expect(printed.filter((line) => line.includes('providers:'))).toEqual([
    'ok     providers: mock, imap, telegram can be linked; not configured: linkedin, outlook\n',
    expect.stringMatching(
      /^wrong {2}providers: google: link: the first page cannot be made: .+: The connection was refused: /,
    ),
    'wrong  providers: whatsapp: link: the first page cannot be made: no answer from the messenger\n',
    'wrong  providers: instagram: page "start": title: must be a text in each language: en, de\n',
  ]);
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
