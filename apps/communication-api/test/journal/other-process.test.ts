import { randomBytes } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';
import { createTestDatabase } from '../support/test-database.ts';

const { url: databaseUrl, drop } = await createTestDatabase(undefined, inject('postgres').port);
cleanUpLater(drop);
const environment = { DATABASE_URL: databaseUrl, SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` };
// The second service knows what the database knows, as the first one would after a restart.
const before = await startService(environment);
const after = await startService(environment);

test('a retry gets its result from another process, as after a restart, and no limit is in its way', async () => {
  const { id, token } = await before.application();
  const account = await before.rooms.accounts.insert(id, {
    provider: 'mock',
    providerUserId: 'me@mock.test',
    name: 'me@mock.test',
    scopeId: null,
    secret: { credentials: { drafts: true } },
  });
  const first = clientOf(before.url, token);
  const second = clientOf(after.url, token);
  const route = 'POST /api/v1/emails';
  expect((await first('PUT', '/v2/limits', { account_id: account?.id, route, windows: ['2/5m'] })).status).toBe(200);
  await after.rooms.limits.refresh();
  const send = (client: typeof first, key: string, to = 'ann@example.com', body = 'Hello') =>
    client(
      'POST',
      route.slice(5),
      { account_id: account?.id, to: [{ identifier: to }], body },
      { 'idempotency-key': key },
    );

  const sent = await send(first, 'sent');
  const failed = await send(first, 'failed', 'error.422.recipient_rejected@mock.test');
  expect([sent.status, failed.status]).toEqual([201, 422]);

  // The processes count together, and the window is full now.
  expect((await send(second, 'too many')).status).toBe(429);

  for (let retry = 0; retry < 2; retry++) {
    const again = await send(second, 'sent');
    expect({ status: again.status, text: again.text }).toEqual({ status: 201, text: sent.text });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(again.headers.get('x-ratelimit-limit')).toBeNull();
    const failedAgain = await send(second, 'failed', 'error.422.recipient_rejected@mock.test');
    expect(failedAgain.body).toMatchObject({
      status: 422,
      type: 'errors/recipient_rejected',
      detail: failed.body.detail,
    });
  }
  expect((await send(second, 'sent', 'ann@example.com', 'Bye')).body).toMatchObject({
    status: 409,
    type: 'errors/already_used',
  });
  expect((await send(second, 'too many')).status).toBe(429);
});
