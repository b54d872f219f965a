import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { until } from 'headgate-testbed/redis-server';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Accounts } from '../../src/accounts/accounts.ts';
import { Applications } from '../../src/applications/applications.ts';
import type { Database } from '../../src/db/database.ts';
import { Queue } from '../../src/jobs/queue.ts';
import { Egress } from '../../src/security/egress.ts';
import type { PolicyName } from '../../src/security/egress-policy.ts';
import { Envelope } from '../../src/security/envelope.ts';
import { Conversations } from '../../src/webhooks/conversations.ts';
import { Delivery } from '../../src/webhooks/delivery.ts';
import { type EndpointFields, Endpoints, MAX_ENDPOINTS, WEBHOOK_JOB } from '../../src/webhooks/endpoints.ts';
import { Events, type NewEvent } from '../../src/webhooks/events.ts';
import { FanOut } from '../../src/webhooks/fan-out.ts';
import { linkAccount } from '../support/accounts.ts';
import { DATABASES, type OpenDatabase } from '../support/databases.ts';
import { startReceiver, verifyWebhook, type WebhookReceiver } from '../support/webhook-receiver.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** For endpoints that do not answer, and for those that do: a busy machine answers within the second. */
const [SHORT_MS, ANSWERED_MS] = [700, 1_500];
/** How long an attempt belongs to a process: 15 s for the request, 15 s for statements, and 10 s. */
const TAKEN_MS = 40_000;
const PAGE = { limit: 100, offset: 0, before: undefined };

describe.each(DATABASES)('webhooks on %s', (_, open) => {
  let database: OpenDatabase;
  let db: Database;
  let applicationId: string;
  let accountId: string;
  let now = Date.now();
  let logged: string[] = [];
  const clock = () => now;
  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(line) });
  const envelope = new Envelope([{ id: 'k1', key: randomBytes(32) }]);

  /** Everything that a process has. It is not started, so jobs run when a test says so. */
  function makeProcess(timeoutMs?: number, policy: PolicyName = 'off') {
    const queue = new Queue(db, clock, log);
    const endpoints = new Endpoints(db, envelope, clock, queue.table);
    const fanOut = new FanOut(db, endpoints, queue);
    const events = new Events(clock, fanOut);
    const conversations = new Conversations(db, clock);
    const parts = { db, clock, log, egress: new Egress({ policy }), endpoints, events, conversations };
    queue.handle(WEBHOOK_JOB, new Delivery({ ...parts, timeoutMs }));
    return { queue, endpoints, fanOut, events, conversations };
  }
  let process: ReturnType<typeof makeProcess>;

  beforeAll(async () => {
    database = await open();
    db = database.db;
  });
  afterAll(() => database.close());
  beforeEach(async () => {
    logged = [];
    process = makeProcess();
    applicationId = (await new Applications(db, clock).create('Test', 'development')).id;
    accountId = (await linkAccount({ accounts: new Accounts(db, envelope, clock, process.events) }, applicationId)).id;
    return async () => {
      await process.queue.close();
      await db.deleteFrom('jobs').execute();
    };
  });

  /** An endpoint of the application, and the server behind it. */
  async function endpoint(given: Partial<EndpointFields> = {}, receiver?: WebhookReceiver) {
    const server = receiver ?? (await startReceiver());
    const made = await process.endpoints.create(applicationId, {
      ...{ url: server.url, triggerEvents: ['*'], accountIds: null, description: null, enabled: true },
      ...given,
    });
    const read = async () => {
      const row = await process.endpoints.find(applicationId, made.endpoint.id);
      if (row === undefined) throw new Error('The endpoint is gone.');
      return row;
    };
    return { id: made.endpoint.id, secret: made.secret, server, read };
  }

  const sent: NewEvent = { type: 'email.sent', accountId: null, data: { tracking_id: 'eml_1', label: 'welcome' } };
  const add = (event: Partial<NewEvent> = {}) => process.events.add(applicationId, { ...sent, ...event }, db);
  const run = () => process.queue.runDue();
  const conversations = (endpointId?: string) => process.conversations.list(applicationId, { endpointId }, PAGE);
  const types = ({ requests }: WebhookReceiver) => requests.map(({ body }) => JSON.parse(body.toString()).type);
  const waiting = () => db.selectFrom('jobs').selectAll().execute();

  test('an event of a committed transaction is received, signed as Standard Webhooks', async () => {
    const { server, secret, id } = await endpoint();
    await db.transaction().execute((trx) => process.events.add(applicationId, { ...sent, accountId }, trx));
    await run();
    expect(server.requests).toHaveLength(1);
    const [request] = server.requests;
    if (request === undefined) throw new Error('There is no request.');
    const event = verifyWebhook(request, secret, now);
    expect(event).toEqual({
      object: 'Event',
      id: request.headers['webhook-id'],
      type: 'email.sent',
      timestamp: new Date(now).toISOString(),
      account_id: accountId,
      data: { tracking_id: 'eml_1', label: 'welcome' },
    });
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'communication-api' });
    expect(() => verifyWebhook(request, `whsec_${randomBytes(32).toString('base64')}`, now)).toThrow('signature');
    expect(() => verifyWebhook(request, secret, now + 6 * MINUTE_MS)).toThrow('too old');
    expect(await conversations()).toMatchObject([
      { endpoint_id: id, event_id: (event as { id: string }).id, event_type: 'email.sent', attempt: 1 },
    ]);
    expect(await conversations()).toMatchObject([
      { outcome: 'delivered', status: 204, response: '', error: null, next_attempt_at: null },
    ]);
    expect(await waiting()).toEqual([]);
  });

  test('an event of a transaction that is rolled back is not received', async () => {
    const { server } = await endpoint();
    const adding = db.transaction().execute(async (trx) => {
      await process.events.add(applicationId, sent, trx);
      throw new Error('undo');
    });
    await expect(adding).rejects.toThrow('undo');
    await run();
    expect(server.requests).toEqual([]);
  });

  test('an endpoint receives what it has asked for', async () => {
    const other = (await new Applications(db, clock).create('Other', 'development')).id;
    const all = await endpoint();
    const accounts = await endpoint({ triggerEvents: ['account.*'] });
    const syncs = await endpoint({ triggerEvents: ['account.sync.*', 'tracking.open'] });
    const one = await endpoint({ triggerEvents: ['email.sent'] });
    const mine = await endpoint({ accountIds: [accountId] });
    const off = await endpoint({ enabled: false });
    await add();
    await add({ type: 'email.failed' });
    await add({ type: 'account.connected', accountId });
    await add({ type: 'account.sync.started', accountId });
    await add({ type: 'tracking.open' });
    await process.events.add(other, sent, db);
    await run();
    const sorted = ({ server }: { server: WebhookReceiver }) => [...types(server)].sort();
    expect(sorted(all)).toEqual([
      ...['account.connected', 'account.sync.started', 'email.failed', 'email.sent', 'tracking.open'],
    ]);
    expect(sorted(accounts)).toEqual(['account.connected', 'account.sync.started']);
    expect(sorted(syncs)).toEqual(['account.sync.started', 'tracking.open']);
    expect(sorted(one)).toEqual(['email.sent']);
    expect(sorted(mine)).toEqual(['account.connected', 'account.sync.started']);
    expect(sorted(off)).toEqual([]);
  });

  test('a failed attempt is repeated after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, each ±10 %, with the same id and body', async () => {
    const { server, secret, id } = await endpoint();
    server.answer(500);
    await add();
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 10; attempt++) {
      await run();
      expect(server.requests).toHaveLength(attempt);
      const [job] = await waiting();
      if (job === undefined) break;
      // A millisecond earlier, nothing happens.
      const wait = job.next_at.getTime() - now;
      now += wait - 1;
      await run();
      expect(server.requests).toHaveLength(attempt);
      now += 1;
      waits.push(wait);
    }
    const nominal = [5_000, 5 * MINUTE_MS, 30 * MINUTE_MS, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR_MS)];
    expect(waits).toHaveLength(nominal.length);
    for (const [index, wait] of waits.entries()) {
      expect(wait / (nominal[index] ?? 0)).toBeGreaterThanOrEqual(0.9);
      expect(wait / (nominal[index] ?? 0)).toBeLessThanOrEqual(1.1);
    }
    // Otherwise all endpoints that were away would be asked at the same moment.
    expect(waits.every((wait, index) => wait === nominal[index])).toBe(false);
    const [first] = server.requests;
    for (const request of server.requests) {
      expect(request.headers['webhook-id']).toBe(first?.headers['webhook-id']);
      expect(request.body).toEqual(first?.body);
    }
    const last = server.requests.at(-1);
    if (last !== undefined) verifyWebhook(last, secret, now);
    const attempts = await conversations(id);
    expect(attempts.map(({ attempt }) => attempt)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    expect(attempts.every(({ outcome, status }) => outcome === 'failed' && status === 500)).toBe(true);
    expect(attempts[0]?.next_attempt_at).toBeNull();
    expect(attempts[1]?.next_attempt_at).toEqual(new Date(now));
    // It is given up, and the endpoint still receives other events.
    server.answer(200);
    await add({ type: 'email.failed' });
    await run();
    expect(server.requests).toHaveLength(11);
  });

  test('an endpoint that answers 410 is disabled: what waits is dropped, and the other endpoints are told', async () => {
    const other = await endpoint({ triggerEvents: ['webhook.*'] });
    const { server, id, read } = await endpoint();
    server.answer(503);
    await add();
    await run();
    server.answer(410);
    await add();
    await run();
    expect(await read()).toMatchObject({ enabled: false, disabled_reason: 'gone' });
    await run();
    expect(await waiting()).toEqual([]);
    now += DAY_MS;
    await add();
    await run();
    expect(server.requests).toHaveLength(2);
    expect(other.server.requests.map(({ body }) => JSON.parse(body.toString()))).toMatchObject([
      { type: 'webhook.endpoint_disabled', account_id: null, data: { endpoint_id: id, reason: 'gone' } },
    ]);
    expect(logged.join('')).toContain('a webhook endpoint was disabled');
    // Enabled again, it works as before.
    await process.endpoints.update(applicationId, id, { enabled: true });
    expect(await read()).toMatchObject({ enabled: true, disabled_reason: null, failing_since: null });
    server.answer(204);
    await add();
    await run();
    expect(server.requests).toHaveLength(3);
  });

  test('an endpoint without a success for five days is disabled, and a success begins the five days anew', async () => {
    const { server, read } = await endpoint();
    const fail = async (afterMs: number) => {
      now += afterMs;
      await db.deleteFrom('jobs').execute();
      await add();
      await run();
      return (await read()).enabled;
    };
    server.answer(500);
    expect(await fail(0)).toBe(true);
    const since = now;
    expect((await read()).failing_since).toEqual(new Date(since));
    expect(await fail(4 * DAY_MS)).toBe(true);
    expect((await read()).failing_since).toEqual(new Date(since));
    server.answer(201);
    expect(await fail(0)).toBe(true);
    expect((await read()).failing_since).toBeNull();
    server.answer(404);
    expect(await fail(2 * DAY_MS)).toBe(true);
    expect(await fail(5 * DAY_MS - 1)).toBe(true);
    expect(await fail(1)).toBe(false);
    expect(await read()).toMatchObject({ disabled_reason: 'failing' });
  });

  test('a redirect is not followed, and is a failure', async () => {
    const target = await startReceiver();
    const { server } = await endpoint();
    server.answer((answer) => answer.writeHead(307, { location: target.url }).end());
    await add();
    await run();
    expect(target.requests).toEqual([]);
    expect(await conversations()).toMatchObject([{ outcome: 'failed', status: 307 }]);
  });

  test.each<[string, Parameters<WebhookReceiver['answer']>[0], object, timeoutMs?: number]>([
    ['does not answer', () => undefined, { outcome: 'failed', status: null, error: 'timeout' }, SHORT_MS],
    [
      'ends the connection',
      (answer) => answer.destroy(),
      { outcome: 'failed', status: null, error: 'connection_lost', response: null },
    ],
    [
      'answers, and never ends its body',
      (answer) => answer.writeHead(202).write('so far'),
      { outcome: 'delivered', status: 202, response: '' },
      SHORT_MS,
    ],
    [
      'answers with a large body',
      (answer) => answer.writeHead(200).end('ä\0'.repeat(500_000)),
      { outcome: 'delivered', status: 200, response: `${'ä\ufffd'.repeat(341)}\ufffd` },
    ],
    [
      'answers what is not text',
      (answer) => answer.writeHead(200).end(Buffer.from([0xff, 0x00, 0xc3])),
      { outcome: 'delivered', status: 200, response: '\ufffd\ufffd\ufffd' },
    ],
  ])('an endpoint that %s', async (_, answer, expected, timeoutMs = ANSWERED_MS) => {
    const { server } = await endpoint();
    server.answer(answer);
    await add();
    await makeProcess(timeoutMs).queue.runDue();
    expect(await conversations()).toMatchObject([{ attempt: 1, ...expected }]);
    expect(server.requests).toHaveLength(1);
  });

  test('an endpoint whose connection is refused, or which speaks no HTTP, has failed', async () => {
    const nonsense = createServer((socket) => socket.end('nonsense\r\n\r\n'));
    await new Promise<void>((resolve) => nonsense.listen(0, '127.0.0.1', resolve));
    const { port } = nonsense.address() as { port: number };
    await endpoint({ url: `http://127.0.0.1:${port}/` });
    await add();
    await run();
    nonsense.close();
    now += 10_000;
    await run();
    expect(await conversations()).toMatchObject([
      { outcome: 'failed', status: null, error: 'refused' },
      { outcome: 'failed', status: null, error: 'connection_lost' },
    ]);
  });

  test('an endpoint at a forbidden address gets no connection, and one without TLS no request', async () => {
    const { server } = await endpoint();
    await add();
    await makeProcess(undefined, 'public').queue.runDue();
    await endpoint({ url: server.url.replace('http:', 'https:'), triggerEvents: ['email.failed'] });
    await add({ type: 'email.failed' });
    await db
      .deleteFrom('jobs')
      .where('lane', '=', (await conversations())[0]?.endpoint_id ?? '')
      .execute();
    await run();
    expect(server.requests).toEqual([]);
    expect((await conversations()).map(({ error }) => error).sort()).toEqual(['forbidden', 'tls']);
  });

  test('while a secret rotates, requests are signed with both for 24 hours', async () => {
    const { server, secret: before, id } = await endpoint();
    const rotated = await process.endpoints.rotateSecret(applicationId, id);
    const after = rotated?.secret ?? '';
    expect(after).not.toBe(before);
    await add();
    await run();
    now += DAY_MS - 1;
    await add();
    await run();
    for (const [index, at] of [now - DAY_MS + 1, now].entries())
      for (const secret of [before, after]) {
        const request = server.requests[index];
        if (request === undefined) throw new Error('There is no request.');
        verifyWebhook(request, secret, at);
      }
    now += 1;
    await add();
    await run();
    const [, , last] = server.requests;
    if (last === undefined) throw new Error('There is no request.');
    verifyWebhook(last, after, now);
    expect(() => verifyWebhook(last, before, now)).toThrow('signature');
    expect(await process.endpoints.rotateSecret(applicationId, 'whe_unknown')).toBeUndefined();
  });

  test('a slow endpoint delays no other one', async () => {
    const slow = await endpoint({ triggerEvents: ['email.sent'] });
    const fast = await endpoint({ triggerEvents: ['email.failed'] });
    const hung: ServerResponse[] = [];
    slow.server.answer((answer) => hung.push(answer));
    for (let count = 0; count < 7; count++) await add();
    const started = run();
    await until(() => hung.length >= 5, 'the slow endpoint is busy');
    await add({ type: 'email.failed' });
    const added = run();
    await until(() => fast.server.requests.length === 1, 'the fast endpoint is served');
    // Its bound is five, so the sixth request waits for an answer; the fast one does not.
    expect(hung).toHaveLength(5);
    slow.server.answer(204);
    for (const answer of hung) answer.writeHead(204).end();
    await Promise.all([started, added]);
    expect(slow.server.requests).toHaveLength(7);
  });

  test('49 endpoints that hang delay neither the 50th of their application nor those of another application', async () => {
    const slow = await startReceiver();
    const hung: ServerResponse[] = [];
    slow.answer((answer) => hung.push(answer));
    for (let count = 0; count < 49; count++) await endpoint({ triggerEvents: ['email.sent'] }, slow);
    const fiftieth = await endpoint({ triggerEvents: ['email.failed'] });
    for (let count = 0; count < 7; count++) await add();
    const started = run();
    await until(() => hung.length >= 195, 'the slow endpoints have the share of their application');
    await add({ type: 'email.failed' });
    applicationId = (await new Applications(db, clock).create('Other', 'development')).id;
    const other = await endpoint();
    for (let count = 0; count < 10; count++) await add();
    void run();
    await until(() => fiftieth.server.requests.length === 1 && other.server.requests.length === 10, 'the others');
    expect(hung.length).toBeLessThan(200);
    slow.answer(204);
    for (const answer of hung) answer.writeHead(204).end();
    await started;
    expect(await waiting()).toEqual([]);
  });

  test('a process that ends after the answer, and before it has noted it, delivers a second time with the same id', async () => {
    const { server } = await endpoint();
    const dying = makeProcess();
    let end = (_: Error): void => undefined;
    vi.spyOn(dying.conversations, 'add').mockReturnValue(
      new Promise((_, reject) => {
        end = reject;
      }),
    );
    await add();
    const died = dying.queue.runDue();
    await until(() => server.requests.length === 1, 'the first request');
    await run();
    expect(server.requests).toHaveLength(1);
    now += TAKEN_MS;
    await run();
    expect(server.requests.map(({ headers }) => headers['webhook-id'])).toEqual([
      server.requests[0]?.headers['webhook-id'],
      server.requests[0]?.headers['webhook-id'],
    ]);
    expect(await conversations()).toMatchObject([{ attempt: 2, outcome: 'delivered' }]);
    // If it was only frozen, it changes nothing any more.
    end(new Error('too late'));
    await died;
    expect(await waiting()).toEqual([]);
  });

  test('an event is delivered again on request, with the same id, and its attempts begin anew', async () => {
    const { server, id } = await endpoint();
    server.answer(500);
    await add();
    await run();
    const eventId = String(server.requests[0]?.headers['webhook-id']);
    server.answer(200);
    for (let count = 0; count < 2; count++) {
      now += 1;
      await process.fanOut.redeliver(applicationId, eventId, id);
      await run();
    }
    expect(server.requests.map(({ headers }) => headers['webhook-id'])).toEqual([eventId, eventId, eventId]);
    expect((await conversations()).map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'delivered'],
      [1, 'delivered'],
      [1, 'failed'],
    ]);
  });

  test('what waits for an endpoint is dropped if it is disabled or deleted, and its requests stay listed', async () => {
    for (const end of ['disable', 'delete'] as const) {
      const { server, id } = await endpoint();
      server.answer(500);
      await add();
      await run();
      if (end === 'disable') await process.endpoints.update(applicationId, id, { enabled: false });
      else expect(await process.endpoints.remove(applicationId, id)).toBe(true);
      expect(await waiting()).toEqual([]);
      expect(await conversations(id)).toHaveLength(1);
      // A job that was added at the same moment is dropped when its turn comes.
      const [{ event_id = '' } = {}] = await conversations(id);
      await process.queue.add(applicationId, [{ kind: WEBHOOK_JOB, lane: id, subject: event_id }], db);
      await run();
      expect(server.requests).toHaveLength(1);
      expect(await waiting()).toEqual([]);
    }
  });

  test('requests are erased after 14 days, and events after 30', async () => {
    // Those of other tests.
    await db.deleteFrom('webhook_conversations').execute();
    await db.deleteFrom('events').execute();
    await endpoint();
    await add();
    await run();
    const erase = async () => [await process.conversations.deleteOld(10), await process.events.deleteOld(10, db)];
    now += 14 * DAY_MS;
    const [conversationsThen] = await erase();
    now += 1;
    expect([conversationsThen, await erase()]).toEqual([0, [1, 0]]);
    now += 16 * DAY_MS;
    expect(await erase()).toEqual([0, 1]);
    expect(await db.selectFrom('events').select('id').where('application_id', '=', applicationId).execute()).toEqual(
      [],
    );
  });

  test('an application has a bounded number of endpoints, also if several are created at once', async () => {
    const server = await startReceiver();
    const results = await Promise.allSettled(Array.from({ length: MAX_ENDPOINTS + 5 }, () => endpoint({}, server)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(MAX_ENDPOINTS);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { status: 409 } });
  });
});
