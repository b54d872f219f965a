import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkMetrics, findPromtool } from 'headgate-testbed/promtool';
import { startRedis, until } from 'headgate-testbed/redis-server';
import { beforeAll, describe, expect, test } from 'vitest';
import { openPool } from '../../src/db/database.ts';
import { linkAccount } from '../support/accounts.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { openTestDatabase } from '../support/databases.ts';
import { startService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const redis = await startRedis();
cleanUpLater(() => redis.stop());
const { url: DATABASE_URL = '', close } = await openTestDatabase('PostgreSQL');
const embedded = await startService({ ROLE: 'all' }, { kind: 'PGlite' });
const pool = openPool(DATABASE_URL, () => undefined);
cleanUpLater(close);
cleanUpLater(() => pool.end());
const onServer = await startService({ DATABASE_URL, ROLE: 'api', LIMIT_LEASES: 'true' });
const shared = await startService({ DATABASE_URL, REDIS_URL: `redis://127.0.0.1:${redis.port}` }, { pool });

// Its installation may take some time.
beforeAll(() => void findPromtool(), 300_000);

const scrape = async ({ rooms }: TestService): Promise<string> => (await rooms.metrics.render()).text;

/** The value of one sample; undefined if there is none. */
async function sampleOf(service: TestService, sample: string): Promise<number | undefined> {
  const line = (await scrape(service)).split('\n').find((each) => each.startsWith(`${sample} `));
  return line === undefined ? undefined : Number(line.slice(sample.length + 1));
}

interface Made {
  readonly applicationId: string;
  readonly account: string;
  send(to?: string, key?: string): Promise<Response>;
}

async function make(service: TestService): Promise<Made> {
  const { id: applicationId, token } = await service.application();
  const { id: account } = await linkAccount(service.rooms, applicationId);
  return {
    ...{ applicationId, account },
    send: (to = 'ann@mock.test', key) =>
      fetch(`${service.url}/api/v1/emails`, {
        method: 'POST',
        headers: {
          ...{ 'x-api-key': token, 'content-type': 'application/json' },
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        body: JSON.stringify({ account_id: account, to: [{ identifier: to }], body: 'Hello' }),
      }),
  };
}

describe.each([
  ['embedded', embedded],
  ['with PostgreSQL and Redis', shared],
])('the metrics of a service, %s', (_, service) => {
  test('count requests, sends, decisions and keys, and name no account, application or address', async () => {
    const { send, applicationId, account } = await make(service);
    expect((await send()).status).toBe(201);
    expect((await send('ann@mock.test', 'one')).status).toBe(201);
    expect((await send('ann@mock.test', 'one')).status).toBe(201);
    expect((await send('error.422.recipient_rejected@mock.test')).status).toBe(422);
    expect((await fetch(`${service.url}/nothing/${account}`)).status).toBe(404);
    const samples = {
      'communication_api_requests_total{route="POST /api/v1/emails",status="201"}': 3,
      'communication_api_requests_total{route="none",status="404"}': 1,
      'communication_api_request_seconds_count{route="POST /api/v1/emails"}': 4,
      'communication_api_sends_total{provider="mock",outcome="sent"}': 2,
      'communication_api_sends_total{provider="mock",outcome="failed"}': 1,
      'communication_api_send_errors_total{provider="mock",type="errors/recipient_rejected"}': undefined,
      'communication_api_send_seconds_count{provider="mock"}': 3,
      'headgate_idempotency_claims_total{outcome="claimed"}': 3,
      'headgate_idempotency_claims_total{outcome="replayed"}': 1,
      communication_api_database_up: 1,
      'communication_api_processes{role="all"}': 1,
    };
    for (const [sample, value] of Object.entries(samples))
      if (value !== undefined) expect({ [sample]: await sampleOf(service, sample) }).toEqual({ [sample]: value });
    const text = await scrape(service);
    expect(text).toMatch(/^communication_api_send_errors_total\{provider="mock",type="\w+\/\w+"\} 1$/m);
    expect(text).toMatch(/^headgate_decisions_total\{.*outcome="accepted"\} 3$/m);
    for (const secret of [account, applicationId, 'mock.test', 'ck_']) expect(text).not.toContain(secret);
  });

  test('satisfy promtool, and their number does not grow with accounts', async () => {
    const series = async (): Promise<number> => (await scrape(service)).match(/^[a-z].*/gm)?.length ?? 0;
    const before = await series();
    for (let count = 0; count < 5; count++) await (await make(service)).send();
    expect(await series()).toBe(before);
    // prom-client's own metrics are not here: some of theirs have findings.
    expect(checkMetrics(await scrape(service))).toEqual([]);
  });
});

test('the journal and the jobs say what waits, and for how long', async () => {
  const { applicationId, account } = await make(embedded);
  const { rooms, db } = embedded;
  const minuteAgo = new Date(Date.now() - 60_000);
  for (const [id, state] of [
    ['eml_1', 'unknown'],
    ['eml_2', 'dispatched'],
  ] as const)
    await db
      .insertInto('sends')
      .values({
        ...{ id, state, application_id: applicationId, account_id: account, fingerprint: '', message_id: id },
        ...{ attempt: 1, rejected: '[]' as never, created_at: minuteAgo, dispatched_at: minuteAgo },
      })
      .execute();
  const subject = { kind: 'webhook', lane: 'whe_1', subject: 'evt_1' };
  await rooms.queue.close();
  await rooms.queue.add(applicationId, [subject], db);
  await db.updateTable('jobs').set({ next_at: minuteAgo }).where('subject', '=', 'evt_1').execute();
  expect(await sampleOf(embedded, 'communication_api_journal_sends{state="unknown"}')).toBe(1);
  const ages = [
    await sampleOf(embedded, 'communication_api_journal_oldest_seconds{state="unknown"}'),
    await sampleOf(embedded, 'communication_api_journal_oldest_seconds{state="dispatched"}'),
    await sampleOf(embedded, 'communication_api_jobs_overdue_seconds{kind="webhook"}'),
  ];
  for (const age of ages) expect(age).toBeGreaterThanOrEqual(60);
  expect(await sampleOf(embedded, 'communication_api_jobs{kind="webhook"}')).toBe(1);
  expect(await sampleOf(embedded, 'communication_api_jobs_overdue_seconds{kind="sent-copy"}')).toBe(0);
});

test('webhooks are counted, with the time from the event to its first request', async () => {
  const receiver = await startReceiver();
  const { applicationId, send } = await make(shared);
  await shared.rooms.endpoints.create(applicationId, {
    ...{ url: receiver.url, triggerEvents: ['email.sent'], accountIds: null, description: null, enabled: true },
  });
  await send();
  await until(() => receiver.requests.length === 1, 'the event is delivered');
  const delivered = 'communication_api_webhook_requests_total{outcome="delivered"}';
  await until(async () => (await sampleOf(shared, delivered)) === 1, 'the request is counted');
  expect(await sampleOf(shared, 'communication_api_webhook_lag_seconds_count')).toBe(1);
});

test('a process whose Redis is away is degraded, and recovers with it', async () => {
  const { health } = shared.rooms;
  health.started();
  expect(await health.ready()).toEqual({ status: 'ok', database: 'ok', schema: 'current', redis: 'ok' });
  await redis.kill();
  await until(async () => (await health.ready()).status === 'degraded', 'it notices');
  expect(await health.ready()).toMatchObject({ database: 'ok', redis: 'away' });
  await redis.restart();
  await until(async () => (await health.ready()).status === 'ok', 'it recovers');
});

test('the tables of apps/communication-api/docs/operations.md have every metric, with its type and its labels', async () => {
  const texts = [await scrape(embedded), await scrape(onServer), await scrape(shared)];
  const served = texts.flatMap((text) =>
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`),
  );
  const rows = [...page.matchAll(/^\| `((?:communication_api|headgate)_\w+)` \| (\w+) \| (.*?) \|/gm)];
  expect(rows.map(([, name, type]) => `${name} ${type}`).sort()).toEqual([...new Set(served)].sort());
  for (const [, name = '', , labels = ''] of rows) {
    const listed = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label);
    const [, sample] = new RegExp(`^${name}(?:_count)?\\{(.*)\\} `, 'm').exec(texts.join('\n')) ?? [];
    const given = [...(sample ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label);
    if (sample !== undefined) expect({ name, labels: given }).toEqual({ name, labels: listed });
  }
});

test('the alerts of apps/communication-api/docs/operations.md are valid, and use metrics that exist', () => {
  const [, rules = ''] = /```yaml\n(groups:[\s\S]*?)```/.exec(page) ?? [];
  const file = join(temporaryFolder(), 'rules.yml');
  writeFileSync(file, rules);
  const { status, stdout, stderr } = spawnSync(findPromtool(), ['check', 'rules', file], { encoding: 'utf8' });
  expect({ status, output: `${stdout}${stderr}` }).toMatchObject({ status: 0 });
  const named = new Set(rules.match(/\b(?:communication_api|headgate)_\w+/g));
  expect([...named].filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([]);
});
