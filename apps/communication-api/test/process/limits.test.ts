/** Processes on PostgreSQL, with nothing else: they limit together. */
import { randomBytes, randomUUID } from 'node:crypto';
import { patient } from 'headgate-testbed/patience';
import { expect, inject, test } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { readConfig } from '../../src/config.ts';
import { openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { Keys } from '../../src/keys/keys.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf } from '../support/client.ts';
import { startProcess } from '../support/service-process.ts';
import { createTestDatabase } from '../support/test-database.ts';

const { url, drop } = await createTestDatabase(undefined, inject('postgres').port);
cleanUpLater(drop);
const environment = {
  DATABASE_URL: url,
  SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  EGRESS_POLICY: 'off',
};
const db = openServer(url, () => undefined);
cleanUpLater(() => db.destroy());

test('a limit that one process changed holds in the other, and both count together, also after one was killed', async () => {
  await migrate(db);
  const applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  const key = { name: 'k', role: 'service', scopeId: null, expiresAt: new Date(Date.now() + 3_600_000) } as const;
  const { token } = await new Keys(db, Date.now, { warn: () => undefined }).create(applicationId, 'development', key);
  const envelope = new Envelope(readConfig(environment).SECRET_KEYS ?? []);
  const account = await new Accounts(db, envelope, Date.now, new Events(Date.now)).insert(applicationId, {
    ...{ provider: 'mock', providerUserId: randomUUID(), name: 'me@mock.test', scopeId: null },
    secret: { credentials: { drafts: true } },
  });
  const account_id = account?.id;
  const [one, other] = await Promise.all([startProcess(environment), startProcess(environment)]);
  const [here, there] = [clientOf(one.url, token), clientOf(other.url, token)];
  const send = async (client: typeof here) =>
    (await client('POST', '/api/v1/emails', { account_id, to: [{ identifier: 'ann@mock.test' }], body: 'Hi' })).status;

  const adjusted = { account_id, route: 'POST /api/v1/emails', windows: ['3/1h'] };
  expect((await here('PUT', '/v2/limits', adjusted)).status).toBe(200);
  const windows = async () => (await there('GET', `/v2/limits?account_id=${account_id}`)).body.data[1].windows;
  await expect.poll(windows, { timeout: patient(2_000), interval: 20 }).toEqual(['3/1h']);
  expect([await send(here), await send(there), await send(here)]).toEqual([201, 201, 201]);
  expect([await send(here), await send(there)]).toEqual([429, 429]);
  one.child.kill('SIGKILL');
  await one.ended;
  expect(await send(there)).toBe(429);
});
