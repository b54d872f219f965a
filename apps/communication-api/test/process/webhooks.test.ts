import { NIGHTLY } from 'headgate-testbed/nightly';
import { until } from 'headgate-testbed/redis-server';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { type JobStep, Queue } from '../../src/jobs/queue.ts';
import { Endpoints } from '../../src/webhooks/endpoints.ts';
import { Events } from '../../src/webhooks/events.ts';
import { FanOut } from '../../src/webhooks/fan-out.ts';
import { startProcess } from '../support/service-process.ts';
import { makeSharedDatabase } from '../support/shared-database.ts';
import { startReceiver, verifyWebhook, type WebhookReceiver } from '../support/webhook-receiver.ts';

/** Longer than an attempt belongs to a process that died. */
const PATIENCE_MS = 90_000;
const log = { warn: () => undefined, error: () => undefined };

/** A database with an endpoint, and no process yet. */
interface World {
  readonly environment: Record<string, string>;
  readonly db: Database;
  readonly token: string;
  readonly receiver: WebhookReceiver;
  readonly secret: string;
  /** Commits an event, as a process does that has no time left to deliver it. */
  addEvent(): Promise<void>;
}

async function makeWorld(): Promise<World> {
  const { environment, db, envelope, applicationId, token } = await makeSharedDatabase();
  const queue = new Queue(db, Date.now, log);
  const endpoints = new Endpoints(db, envelope, Date.now, queue.table);
  const events = new Events(Date.now, new FanOut(db, endpoints, queue));
  const receiver = await startReceiver();
  const { secret } = await endpoints.create(applicationId, {
    ...{ url: receiver.url, triggerEvents: ['email.*'], accountIds: null, description: null, enabled: true },
  });
  const addEvent = () =>
    db
      .transaction()
      .execute((trx) => events.add(applicationId, { type: 'email.sent', accountId: null, data: {} }, trx));
  return { environment, db, token, receiver, secret, addEvent };
}

const idsOf = ({ requests }: WebhookReceiver) => requests.map(({ headers }) => headers['webhook-id']);
const jobsOf = async ({ db }: World) => (await db.selectFrom('jobs').select('subject').execute()).length;

describe('kill -9', () => {
  // Each waits until the attempt of the dead process ends: 45 s. `test/jobs/queue.test.ts` moves a clock instead.
  test.runIf(NIGHTLY).concurrent.each<[JobStep, number]>([
    ['job taken', 1],
    ['job attempted', 2],
  ])('at "%s": the next process delivers the event, with the same id', async (step, expected) => {
    const world = await makeWorld();
    const { receiver, secret } = world;
    const dying = await startProcess({ ...world.environment, AT_STEP: step });
    await world.addEvent();
    await dying.ended;
    expect(receiver.requests).toHaveLength(expected - 1);
    await startProcess(world.environment);
    await until(() => receiver.requests.length === expected, 'the event is delivered', PATIENCE_MS);
    await until(async () => (await jobsOf(world)) === 0, 'the job is done');
    expect(new Set(idsOf(receiver)).size).toBe(1);
    const request = receiver.requests.at(-1);
    if (request !== undefined) verifyWebhook(request, secret);
  });

  test.concurrent('between commit and delivery: the next process delivers the event', async () => {
    const world = await makeWorld();
    const { receiver } = world;
    await world.addEvent();
    const { id } = await world.db.selectFrom('events').select('id').executeTakeFirstOrThrow();
    const first = await startProcess(world.environment);
    await until(() => receiver.requests.length === 1, 'the event is delivered');
    await until(async () => (await jobsOf(world)) === 0, 'the job is done');
    const answer = await fetch(`${first.url}/v2/webhooks/events/${id}/redeliver`, {
      method: 'POST',
      headers: { 'x-api-key': world.token },
    });
    first.child.kill('SIGKILL');
    expect(answer.status).toBe(200);
    await first.ended;
    await startProcess(world.environment);
    await until(async () => receiver.requests.length > 1 && (await jobsOf(world)) === 0, 'delivered', PATIENCE_MS);
    expect(new Set(idsOf(receiver))).toEqual(new Set([id]));
  });
});

test.concurrent('several processes deliver each event once, and a process that is told to end delivers what it has begun', async () => {
  const world = await makeWorld();
  const { receiver, environment } = world;
  const [first] = await Promise.all([startProcess(environment), startProcess(environment)]);
  for (let count = 0; count < 100; count++) {
    await world.addEvent();
    if (count === 50) first?.child.kill('SIGTERM');
  }
  await until(async () => (await jobsOf(world)) === 0, 'all events are delivered');
  expect(await first?.ended).toBe(0);
  expect(receiver.requests).toHaveLength(100);
  expect(new Set(idsOf(receiver)).size).toBe(100);
});
