import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { startRedis, until } from '../../../../test/support/redis-server.ts';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import { readConfig } from '../../src/config.ts';
import { type Database, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { SendStep } from '../../src/journal/sender.ts';
import { Keys } from '../../src/keys/keys.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Events } from '../../src/webhooks/events.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { createTestDatabase } from '../support/test-database.ts';

/** Longer than a claim's lease, and than a process is taken for alive. */
const PATIENCE_MS = 90_000;
const EVERY_STEP: readonly SendStep[] = ['asked', 'taken', 'drafted', 'dispatched', 'sent', 'settled'];
const DIRECT_STEPS = EVERY_STEP.filter((step) => step !== 'drafted');

type Kind = 'draft' | 'direct';

/** Processes that share a database and a Redis, and the one of them that no test kills. */
interface Fleet {
  readonly environment: Record<string, string>;
  readonly healthy: ServiceProcess;
}

let db: Database;
let token: string;
let accounts: Accounts;
let applicationId: string;
/** Its Redis keeps the claims of dead processes until their leases expire. */
let fleet: Fleet;
/** Its healthy process finds an empty Redis, as if Redis had lost everything when the other process died. */
let forgetful: Fleet;

beforeAll(async () => {
  const { url, drop } = await createTestDatabase(undefined, inject('postgres').port);
  cleanUpLater(drop);
  const redis = await startRedis();
  cleanUpLater(() => redis.stop());
  const shared = { DATABASE_URL: url, SECRET_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  db = openServer(url, () => undefined);
  cleanUpLater(() => db.destroy());
  await migrate(db);
  accounts = new Accounts(db, new Envelope(readConfig(shared).SECRET_KEYS ?? []), Date.now, new Events(Date.now));
  applicationId = (await new Applications(db, Date.now).create('Test', 'development')).id;
  const key = { name: 'k', role: 'service', scopeId: null, expiresAt: new Date(Date.now() + 3_600_000) } as const;
  token = (await new Keys(db, Date.now, { warn: () => undefined }).create(applicationId, 'development', key)).token;
  const using = (index: number) => ({ ...shared, REDIS_URL: `redis://127.0.0.1:${redis.port}/${index}` });
  const [first, second] = await Promise.all([startProcess(using(0)), startProcess(using(2))]);
  fleet = { environment: using(0), healthy: first };
  forgetful = { environment: using(1), healthy: second };
}, 60_000);

/** One email: each has an account of its own, so that no limit is in the way. */
interface Email {
  readonly account: string;
  readonly key: string;
}

async function newEmail(kind: Kind): Promise<Email> {
  const name = `${randomUUID()}@mock.test`;
  const secret = { credentials: { drafts: kind === 'draft' } };
  const account = await accounts.insert(applicationId, {
    ...{ provider: 'mock', providerUserId: name, name, scopeId: null, secret },
  });
  return { account: account?.id ?? '', key: randomUUID() };
}

const send = (url: string, { account, key }: Email) =>
  fetch(`${url}/api/v1/emails`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' }),
  });

interface Told {
  readonly status: number;
  readonly body: { readonly type?: string; readonly tracking_id?: string; readonly detail?: string };
}

/** Retries as a client does: as long as the answer says that a retry makes sense. */
async function retry({ healthy }: Fleet, email: Email): Promise<Told> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await send(healthy.url, email);
    const body = (await answer.json()) as Told['body'];
    const again = answer.headers.get('retry-after');
    if (answer.status === 201 || (again === null && answer.status < 500)) return { status: answer.status, body };
    if (Date.now() > deadline) throw new Error(`No end of retries: ${answer.status} ${JSON.stringify(body)}`);
    await pause(Math.min(Number(again ?? 1), 2) * 1_000);
  }
}

const received = async ({ account }: Email): Promise<number> =>
  (await db.selectFrom('mock_messages').select('id').where('account_id', '=', account).execute()).length;

/** Sends in a process of its own that kills or freezes itself at a step. */
async function sendUntil({ environment }: Fleet, kind: Kind, step: SendStep, signal: 'SIGKILL' | 'SIGSTOP') {
  const email = await newEmail(kind);
  const process = await startProcess({ ...environment, AT_STEP: step, AT_STEP_SIGNAL: signal });
  const answered = send(process.url, email).then(
    async (answer) => `${answer.status} ${await answer.text()}`,
    () => 'no answer',
  );
  const reached =
    signal === 'SIGKILL' ? process.ended : until(() => isStopped(process.child.pid), 'the process is frozen');
  // An answer means that the step was not reached.
  const instead = await Promise.race([reached.then(() => undefined), answered]);
  if (instead !== undefined && instead !== 'no answer') throw new Error(`Answered before "${step}": ${instead}`);
  await reached;
  return { email, process, answered };
}

const isStopped = (pid: number | undefined): boolean =>
  /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));

describe('a process that is killed, and Redis loses everything', () => {
  test.concurrent.each(EVERY_STEP)('at "%s": a draft is sent once', async (step) => {
    const { email } = await sendUntil(forgetful, 'draft', step, 'SIGKILL');
    expect(await retry(forgetful, email)).toMatchObject({ status: 201, body: { object: 'EmailSent' } });
    expect(await received(email)).toBe(1);
  });

  test.concurrent.each(DIRECT_STEPS)('at "%s": an email without a draft is never sent twice', async (step) => {
    const { email } = await sendUntil(forgetful, 'direct', step, 'SIGKILL');
    const { status, body } = await retry(forgetful, email);
    // What happened between the mark and the provider's answer is not known.
    if (step === 'dispatched') expect({ status, type: body.type }).toEqual({ status: 409, type: 'errors/conflict' });
    else expect(status).toBe(201);
    expect(await received(email)).toBe(step === 'dispatched' ? 0 : 1);
  });
});

describe('a process that is frozen longer than its lease, and then goes on', () => {
  test.concurrent.each(EVERY_STEP)('at "%s": a draft is sent once', async (step) => {
    const { email, process, answered } = await sendUntil(fleet, 'draft', step, 'SIGSTOP');
    expect(await retry(fleet, email)).toMatchObject({ status: 201 });
    process.child.kill('SIGCONT');
    await answered;
    expect(await received(email)).toBe(1);
  });

  test.concurrent.each(DIRECT_STEPS)('at "%s": an email without a draft is sent once', async (step) => {
    const { email, process, answered } = await sendUntil(fleet, 'direct', step, 'SIGSTOP');
    expect((await retry(fleet, email)).status).toBe(step === 'dispatched' ? 409 : 201);
    process.child.kill('SIGCONT');
    await answered;
    // A process that wakes up with the mark has the right to send, and writes down that it did.
    expect(await received(email)).toBe(1);
    expect((await retry(fleet, email)).status).toBe(201);
  });
});
