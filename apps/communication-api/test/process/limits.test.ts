/** Processes on PostgreSQL, with nothing else: they limit together. */
import { randomUUID } from 'node:crypto';
import { patient } from 'headgate-testbed/patience';
import { expect, test } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Events } from '../../src/webhooks/events.ts';
import { clientOf } from '../support/client.ts';
import { startProcess } from '../support/service-process.ts';
import { makeSharedDatabase } from '../support/shared-database.ts';

test('a limit that one process changed holds in the other, and both count together, also after one was killed', async () => {
  const { environment, db, envelope, applicationId, token } = await makeSharedDatabase();
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
