import { randomUUID } from 'node:crypto';
import { startPostgres } from 'headgate-testbed/postgres-server';
import { sql } from 'kysely';
import { afterAll, expect, test } from 'vitest';
import type { ApiDocument } from '../../src/api/document.ts';
import { linkAccount } from '../support/accounts.ts';
import { operationsOf, pathWith } from '../support/operations.ts';
import { startService } from '../support/service.ts';

const STATEMENT_TIMEOUT_MS = 300;

const postgres = await startPostgres();
// Registered before the service, so that it runs after the service has closed.
afterAll(() => postgres.stop());
const service = await startService({
  DATABASE_URL: `${postgres.url()}?statement_timeout=${STATEMENT_TIMEOUT_MS}`,
});
const { key, id: applicationId } = await service.application();
const operations = operationsOf(service.app.swagger() as unknown as ApiDocument);

/** A key per operation: the service remembers a key that it has seen. */
const newKeys = () => Promise.all(operations.map(() => key('service')));

async function answersOfAll(keys: readonly string[]): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  for (const [index, operation] of operations.entries()) {
    const { method } = operation;
    const headers = { 'x-api-key': keys[index] ?? '' };
    const answer = await fetch(service.url + pathWith(operation, 'x'), { method, headers });
    const { type } = (await answer.json()) as { type: string };
    answers.push({ status: answer.status, type, retryAfter: answer.headers.get('retry-after') });
  }
  return answers;
}

async function send(token: string, account: string) {
  const headers = { 'x-api-key': token, 'content-type': 'application/json', 'idempotency-key': randomUUID() };
  const body = JSON.stringify({ account_id: account, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' });
  const answer = await fetch(`${service.url}/api/v1/emails`, { method: 'POST', headers, body });
  const { type } = (await answer.json()) as { type?: string };
  return { status: answer.status, type, retryAfter: answer.headers.get('retry-after') };
}

const UNAVAILABLE = { status: 503, type: 'errors/service_unavailable', retryAfter: '5' };

test('a fault of the service is a 500 without details', async () => {
  const keys = await newKeys();
  await sql`alter table api_keys rename to away`.execute(service.db);
  const expected = { status: 500, type: 'errors/unexpected_error', retryAfter: null };
  expect(await answersOfAll(keys)).toEqual(operations.map(() => expected));
  await sql`alter table away rename to api_keys`.execute(service.db);
});

test('a statement that takes too long is a 503', async () => {
  const token = await key('service');
  await service.db.transaction().execute(async (transaction) => {
    await sql`lock table api_keys in access exclusive mode`.execute(transaction);
    const answer = await fetch(`${service.url}/v2/emails/x`, { headers: { 'x-api-key': token } });
    expect(await answer.json()).toMatchObject({ status: 503, type: 'errors/service_unavailable' });
  });
});

test('a database that has stopped is a 503 with retry-after, and the service recovers with it', async () => {
  const keys = await newKeys();
  const token = await key('service');
  const account = await linkAccount(service.rooms, applicationId);
  // The process remembers the account for a moment, so its next email comes as far as the claim of its key.
  expect(await send(token, account.id)).toMatchObject({ status: 201 });
  await postgres.kill();
  expect(await send(token, account.id)).toEqual(UNAVAILABLE);
  expect(await answersOfAll(keys)).toEqual(operations.map(() => UNAVAILABLE));
  await postgres.restart();
  const answer = await fetch(`${service.url}/v2/emails/x`, { headers: { 'x-api-key': token } });
  expect(answer.status).toBe(404);
});
