import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import { expect, inject, test } from 'vitest';
import type { SendStep } from '../../src/journal/claims.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startService } from '../support/service.ts';
import { createTestDatabase } from '../support/test-database.ts';

const { url: databaseUrl, drop } = await createTestDatabase(undefined, inject('postgres').port);
cleanUpLater(drop);
const proxy = await startTcpProxy(inject('postgres').port);
cleanUpLater(() => proxy.close());
const through = new URL(databaseUrl);
through.port = String(proxy.port);

const service = await startService({ DATABASE_URL: through.href });
const { id: applicationId, token } = await service.application();

/** Each email has an account of its own, so that no limit is in the way. */
async function newEmail(kind: 'draft' | 'direct'): Promise<{ readonly account: string; readonly key: string }> {
  const name = `${randomUUID()}@mock.test`;
  const secret = { credentials: { drafts: kind === 'draft' } };
  const account = await service.rooms.accounts.insert(applicationId, {
    ...{ provider: 'mock', providerUserId: name, name, scopeId: null, secret },
  });
  return { account: account?.id ?? '', key: randomUUID() };
}

const send = ({ account, key }: { readonly account: string; readonly key: string }) =>
  fetch(`${service.url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' }),
  });

/** At this step, the answer of the next statement is lost: the server has done it, and the service does not know. */
function cutAt(wanted: SendStep): () => void {
  const listener = (message: unknown): void => {
    if ((message as { step: SendStep }).step === wanted) proxy.cutAfterBytes = 0;
  };
  subscribe('communication-api:send', listener);
  return () => unsubscribe('communication-api:send', listener);
}

/** Far longer than the service takes to write down what it knows. */
const PATIENCE_MS = 20_000;

const CASES = [
  ...(['asked', 'taken', 'drafted', 'dispatched', 'sent'] as const).map((step) => ({ kind: 'draft', step }) as const),
  ...(['asked', 'taken', 'dispatched', 'sent'] as const).map((step) => ({ kind: 'direct', step }) as const),
];

test.each(CASES)(
  '$kind: the database connection is lost after "$step", and the email is received once',
  async ({ kind, step }) => {
    const email = await newEmail(kind);
    const stop = cutAt(step);
    const first = await send(email);
    stop();
    proxy.cutAfterBytes = undefined;
    if (first.status !== 201)
      await expect.poll(async () => (await send(email)).status, { interval: 100, timeout: PATIENCE_MS }).toBe(201);
    const messages = await service.db
      .selectFrom('mock_messages')
      .select('id')
      .where('account_id', '=', email.account)
      .execute();
    expect(messages.length).toBe(1);
  },
);
