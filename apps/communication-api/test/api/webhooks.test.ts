import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from 'headgate-testbed/redis-server';
import { beforeAll, describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { startService, type TestApplication } from '../support/service.ts';
import { startReceiver, verifyWebhook, type WebhookReceiver } from '../support/webhook-receiver.ts';

const { url, application, rooms, db } = await startService();
const { id: applicationId, token, key } = await application();
const call = clientOf(url, token);
const ENDPOINTS = '/v2/webhooks/endpoints';
const newEndpoint = { url: 'https://app.example/hooks', trigger_events: ['*'] };

const create = async (fields: object = {}) => (await call('POST', ENDPOINTS, { ...newEndpoint, ...fields })).body;
const addEvent = (to = applicationId, accountId: string | null = null) =>
  rooms.events.add(to, { type: 'email.sent', accountId, data: { tracking_id: 'eml_1' } }, db);
interface Event {
  readonly type: string;
}
const conversationsOf = async (endpoint: { id: string }) =>
  (await call('GET', `/v2/webhooks/conversations?endpoint_id=${endpoint.id}`)).body.data;

test('an endpoint is created, read, listed, changed and deleted; its secret is shown once', async () => {
  const { secret, ...created } = await create();
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(created).toEqual({
    object: 'WebhookEndpoint',
    id: expect.stringMatching(/^whe_/),
    application_id: applicationId,
    ...newEndpoint,
    account_ids: null,
    description: null,
    enabled: true,
    disabled_reason: null,
    failing_since: null,
    created_at: expect.stringMatching(/Z$/),
  });
  const path = `${ENDPOINTS}/${created.id}`;
  expect((await call('GET', path)).body).toEqual(created);
  const changes = { url: 'https://app.example/v2', trigger_events: ['account.*'], description: 'CRM', enabled: false };
  expect((await call('PATCH', path, changes)).body).toEqual({ ...created, ...changes });
  expect((await call('PATCH', path, {})).body).toEqual({ ...created, ...changes });
  expect((await call('PATCH', path, { description: null })).body).toMatchObject({ description: null, enabled: false });
  await create();
  const page = (await call('GET', `${ENDPOINTS}?limit=1`)).body;
  expect(page).toMatchObject({ object: 'WebhookEndpointList', has_more: true });
  const next = (await call('GET', `${ENDPOINTS}?limit=1&cursor=${page.next_cursor}`)).body;
  expect(next.data[0].id).toBe(created.id);
  expect((await call('DELETE', path)).body).toEqual({ object: 'WebhookEndpointDeleted', id: created.id });
  expect((await call('DELETE', path)).status).toBe(404);
});

test.each<[string, object]>([
  ['url: must be an https address.', { url: 'ftp://app.example/' }],
  ['url: must be an https address.', { url: 'app.example' }],
  ['url: must be https, or http to a loopback', { url: 'http://app.example/' }],
  ['url: must be https, or http to a loopback', { url: 'http://192.168.1.1/' }],
  ['url: must not have a fragment', { url: 'https://app.example/#' }],
  ['url: must not have a user name', { url: 'https://user:pass@app.example/' }],
  ['url: must have at most 2000', { url: `https://app.example/${'x'.repeat(2_000)}` }],
  ['trigger_events: must have at least 1 entry', { trigger_events: [] }],
  ['trigger_events[0]', { trigger_events: ['email.*.sent'] }],
  ['trigger_events[1]', { trigger_events: ['email.sent', 'e*'] }],
  ['account_ids: must have at least 1 entry', { account_ids: [] }],
  ['description', { description: 'a\u0000' }],
  ['unknown field "secret"', { secret: 'x' }],
])('%s: %j is a 422', async (detail, fields) => {
  for (const answer of [
    await call('POST', ENDPOINTS, { ...newEndpoint, ...fields }),
    await call('PATCH', `${ENDPOINTS}/${(await create()).id}`, fields),
  ])
    expect(answer).toMatchObject({ status: 422, body: { detail: expect.stringContaining(detail) } });
});

test('a production application receives webhooks by https only', async () => {
  const production = clientOf(url, (await application('production')).token);
  const at = (url: string) => production('POST', ENDPOINTS, { ...newEndpoint, url });
  expect((await at('https://app.example/')).status).toBe(200);
  expect(await at('http://localhost:3000/')).toMatchObject({
    status: 422,
    body: { detail: expect.stringContaining('Only development applications') },
  });
});

test('a text that is not an id names nothing, whatever is in it', async () => {
  const nul = '%00';
  for (const [method, path] of [
    ['GET', `/v2/webhooks/endpoints/${nul}`],
    ['PATCH', `/v2/webhooks/endpoints/${nul}`],
    ['DELETE', `/v2/webhooks/endpoints/${nul}`],
    ['POST', `/v2/webhooks/endpoints/${nul}/secret`],
    ['POST', `/v2/webhooks/events/${nul}/redeliver`],
  ] as const)
    expect([method, path, (await call(method, path, method === 'PATCH' ? {} : undefined)).status]).toEqual([
      method,
      path,
      404,
    ]);
  for (const filter of ['endpoint_id=x', 'event_id=x'])
    expect((await call('GET', `/v2/webhooks/conversations?${filter}`)).body).toMatchObject({ data: [] });
});

test('an endpoint that names an account of nobody, or of another application, is a 404', async () => {
  const other = await application();
  const mine = await linkAccount(rooms, applicationId);
  const theirs = await linkAccount(rooms, other.id);
  expect(await create({ account_ids: [mine.id] })).toMatchObject({ account_ids: [mine.id] });
  for (const id of [theirs.id, 'acc_unknown'])
    for (const answer of [
      await call('POST', ENDPOINTS, { ...newEndpoint, account_ids: [mine.id, id] }),
      await call('PATCH', `${ENDPOINTS}/${(await create()).id}`, { account_ids: [mine.id, id] }),
    ])
      expect(answer).toMatchObject({ status: 404, body: { detail: expect.stringContaining('account_ids[1]') } });
});

const OPERATIONS = [
  ['POST', ENDPOINTS, newEndpoint],
  ['GET', ENDPOINTS],
  ['GET', `${ENDPOINTS}/ID`],
  ['PATCH', `${ENDPOINTS}/ID`, { enabled: false }],
  ['DELETE', `${ENDPOINTS}/ID`],
  ['POST', `${ENDPOINTS}/ID/secret`],
  ['GET', '/v2/webhooks/conversations?endpoint_id=ID'],
  ['POST', '/v2/webhooks/events/EVT/redeliver'],
] as const;

test('only a service key reaches webhooks', async () => {
  const { id: scopeId } = await rooms.scopes.create(applicationId, { name: 'North', reference: null });
  for (const other of [await key('account'), await key('scoped', scopeId)])
    for (const [method, path, body] of OPERATIONS)
      expect(await clientOf(url, other)(method, path, body)).toMatchObject({
        status: 403,
        body: { type: 'errors/insufficient_permissions' },
      });
});

describe('with endpoints that receive', () => {
  let other: TestApplication;
  let receiver: WebhookReceiver;
  let endpoint: { id: string; secret: string };
  let eventId: string;

  beforeAll(async () => {
    other = await application();
    for (const { id } of (await call('GET', `${ENDPOINTS}?limit=100`)).body.data)
      await call('DELETE', `${ENDPOINTS}/${id}`);
    receiver = await startReceiver();
    endpoint = await create({ url: receiver.url });
    await addEvent();
    await until(async () => (await conversationsOf(endpoint)).length === 1, 'the event is delivered');
    const [request] = receiver.requests;
    eventId = String(request?.headers['webhook-id']);
  });

  test('an event arrives soon, and is signed with the secret that was shown', async () => {
    const [request] = receiver.requests;
    if (request === undefined) throw new Error('There is no request.');
    expect(verifyWebhook(request, endpoint.secret)).toMatchObject({ object: 'Event', id: eventId, type: 'email.sent' });
  });

  test('the requests of an endpoint or of an event are listed', async () => {
    const [conversation] = await conversationsOf(endpoint);
    expect(conversation).toEqual({
      object: 'WebhookConversation',
      id: expect.stringMatching(/^whc_/),
      endpoint_id: endpoint.id,
      event_id: eventId,
      event_type: 'email.sent',
      attempt: 1,
      outcome: 'delivered',
      status: 204,
      response: '',
      error: null,
      duration_ms: expect.any(Number),
      next_attempt_at: null,
      created_at: expect.stringMatching(/Z$/),
    });
    const listed = async (query: string) => (await call('GET', `/v2/webhooks/conversations${query}`)).body.data;
    expect(await listed(`?event_id=${eventId}`)).toEqual([conversation]);
    expect(await listed('')).toContainEqual(conversation);
    expect(await listed(`?endpoint_id=${endpoint.id}&event_id=${eventId}&limit=1`)).toEqual([conversation]);
    expect(await listed('?event_id=evt_other')).toEqual([]);
  });

  test('the outcome of an email, and what becomes of an account, arrive', async () => {
    const { id: account } = await linkAccount(rooms, applicationId);
    const email = { account_id: account, to: [{ identifier: 'ann@example.com' }], body: 'Hello' };
    const { tracking_id } = (await call('POST', '/api/v1/emails', email)).body;
    await call('PATCH', `/v2/accounts/${account}`, { paused: true });
    const received = () => receiver.requests.map((request) => verifyWebhook(request, endpoint.secret)) as Event[];
    await until(() => received().some(({ type }) => type === 'account.paused'), 'the account is paused');
    await until(() => received().some(({ type }) => type === 'email.sent'), 'the email is sent');
    expect(received()).toContainEqual(
      expect.objectContaining({
        type: 'email.sent',
        account_id: account,
        data: expect.objectContaining({ tracking_id }),
      }),
    );
    expect(received()).toContainEqual(expect.objectContaining({ type: 'account.paused', account_id: account }));
  });

  test('an event is delivered again: to those that take it, or to the one that is named', async () => {
    const narrow = await create({ url: receiver.url, trigger_events: ['account.*'] });
    const path = `/v2/webhooks/events/${eventId}/redeliver`;
    const answer = { object: 'WebhookRedelivery', event_id: eventId };
    const before = receiver.requests.length;
    expect((await call('POST', path)).body).toEqual({ ...answer, endpoint_ids: [endpoint.id] });
    expect((await call('POST', `${path}?endpoint_id=${narrow.id}`)).body).toEqual({
      ...answer,
      endpoint_ids: [narrow.id],
    });
    await until(() => receiver.requests.length === before + 2, 'both endpoints have received it');
    await call('PATCH', `${ENDPOINTS}/${narrow.id}`, { enabled: false });
    expect((await call('POST', `${path}?endpoint_id=${narrow.id}`)).status).toBe(409);
    expect((await call('POST', `${path}?endpoint_id=whe_unknown`)).status).toBe(404);
    expect((await call('POST', '/v2/webhooks/events/evt_unknown/redeliver')).status).toBe(404);
  });

  test('an event that no endpoint takes is a 409', async () => {
    await addEvent(other.id);
    const { id } = await db
      .selectFrom('events')
      .select('id')
      .where('application_id', '=', other.id)
      .executeTakeFirstOrThrow();
    expect(await clientOf(url, other.token)('POST', `/v2/webhooks/events/${id}/redeliver`)).toMatchObject({
      status: 409,
      body: { type: 'errors/conflict' },
    });
  });

  test('a new secret is shown once, and both verify', async () => {
    const rotated = await call('POST', `${ENDPOINTS}/${endpoint.id}/secret`);
    expect(rotated.body).toEqual({
      object: 'WebhookSecret',
      endpoint_id: endpoint.id,
      secret: expect.stringMatching(/^whsec_/),
      previous_valid_until: expect.stringMatching(/Z$/),
    });
    const before = receiver.requests.length;
    await addEvent();
    await until(() => receiver.requests.length > before, 'the event is received');
    const request = receiver.requests.at(-1);
    for (const secret of [endpoint.secret, rotated.body.secret])
      if (request !== undefined) verifyWebhook(request, secret);
  });

  test('another application reaches none of it', async () => {
    const theirs = clientOf(url, other.token);
    for (const [method, path, body] of OPERATIONS.slice(2)) {
      const answer = await theirs(method, path.replace('ID', endpoint.id).replace('EVT', eventId), body);
      if (method === 'GET' && path.includes('conversations')) expect(answer.body.data).toEqual([]);
      else expect(answer.status).toBe(404);
    }
    expect((await call('GET', `${ENDPOINTS}/${endpoint.id}`)).body).toMatchObject({ enabled: true });
  });
});

test('an application that has too many endpoints gets a 409', async () => {
  const { token } = await application();
  const many = clientOf(url, token);
  const answers = await Promise.all(Array.from({ length: 51 }, () => many('POST', ENDPOINTS, newEndpoint)));
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(1);
});

test('the receiver of apps/communication-api/docs/webhooks.md verifies what the service sends', async () => {
  const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
  const [, code = ''] = /^```js\n(.*?)^```/ms.exec(page) ?? [];
  // Beside the packages that it imports.
  const file = fileURLToPath(new URL('../.receiver-example.mjs', import.meta.url));
  writeFileSync(file, code);
  cleanUpLater(() => rmSync(file));
  const port = await freePort();
  const { id, secret } = await create({ url: `http://127.0.0.1:${port}/webhooks`, enabled: false });
  const receiver = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  cleanUpLater(() => receiver.kill('SIGKILL'));
  let printed = '';
  receiver.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  await once(receiver.stdout, 'data');
  const forged = await fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', body: '{}' });
  expect(forged.status).toBe(401);
  await call('PATCH', `${ENDPOINTS}/${id}`, { enabled: true });
  await addEvent();
  await until(() => printed.includes('email.sent'), 'the example has printed the event');
  await until(async () => (await conversationsOf({ id })).length === 1, 'the request is listed');
  expect((await conversationsOf({ id }))[0]).toMatchObject({ outcome: 'delivered', status: 204 });
  // The same event again is acknowledged, and handled once.
  const [{ event_id }] = await conversationsOf({ id });
  await call('POST', `/v2/webhooks/events/${event_id}/redeliver?endpoint_id=${id}`);
  await until(async () => (await conversationsOf({ id })).length === 2, 'the second request is listed');
  expect(printed.match(/email\.sent/g)).toHaveLength(1);
});
