/** The decision API: what programs get that forward requests themselves. Each answer is as the OpenAPI document says. */
import type { OutgoingHttpHeaders } from 'node:http';
import { Validator } from '@seriousme/openapi-schema-validator';
import { eventually, openRaw, send } from 'headgate-testbed/raw-http';
import { beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, askAdmin, TOKENS } from '../support/admin.ts';
import { DECISIONS, type DecidingGateway, startDeciding } from '../support/decisions.ts';
import { expectProblem, ratesOf, sha256, TOKEN } from '../support/gateway.ts';
import { OTHER_TOKEN } from '../support/keyed.ts';

const EMAILS = 'POST /api/v1/emails';
const SERVICE = 'service-of-1';
let gateway: DecidingGateway;

beforeAll(async () => {
  gateway = await startDeciding({
    admin: ADMIN,
    keys: [
      { sha256: sha256(TOKEN), name: 'first', application: 'app_1' },
      { token: OTHER_TOKEN, application: 'app_2' },
      { token: SERVICE, application: 'app_1', role: 'service' },
      { token: 'service-of-2', application: 'app_2', role: 'service' },
      { token: 'scoped', application: 'app_1', role: 'scoped', scope: 'scp_a' },
    ],
    accounts: [
      ...['acc_1', 'acc_2', 'acc_3', 'acc_blocked'].map((id) => ({ id, application: 'app_1', provider: 'mock' })),
      { id: 'acc_other', application: 'app_2' },
    ],
    routes: [
      { route: EMAILS, account: 'body.account_id', idempotent: { leaseMs: 60_000 } },
      { route: 'POST /paid', account: 'key', idempotent: { required: true } },
      { route: 'GET /files/*', account: 'key' },
      { route: 'GET /search', account: 'address' },
      { route: 'GET /open', account: 'none' },
      { route: 'POST /large', account: 'none', idempotent: { maxKeptBytes: 4 } },
    ],
    idempotency: { waitMs: 0, leaseMs: 60_000 },
    headers: ['x-ratelimit', 'ietf'],
    perAddress: ['5/1m'],
    limits: {
      default: { allMethods: ['4/1m'] },
      providers: { mock: { routes: { [EMAILS]: ['2/10s'] } } },
    },
  });
});

const decide = (json: object, headers = {}) => gateway.decide('/v1/decisions', json, headers);

it('its document is valid OpenAPI 3.1, and needs no key', async () => {
  expect(gateway.document).toMatchObject({ openapi: '3.1.0' });
  expect(await new Validator().validate({ ...structuredClone(gateway.document) })).toMatchObject({ valid: true });
});

describe('limits', () => {
  it('S5: charges every window or none, with the fields of an answer of the gateway, and shares them with the proxy', async () => {
    const first = await decide({ route: EMAILS, account: 'acc_1' });
    expect(first.value).toMatchObject({ outcome: 'accepted', degraded: false, claim: null, response: null });
    expect(first.value.windows).toEqual([
      { limit: 'route', max: 2, used: 1, remaining: 1, durationMs: 10_000, resetMs: expect.any(Number) },
      { limit: 'all-methods', max: 4, used: 1, remaining: 3, durationMs: 60_000, resetMs: expect.any(Number) },
    ]);
    expect(ratesOf(first)).toMatchObject({ limit: 4, remaining: 3 });
    expect(first.headers['ratelimit-policy']).toContain('"route-10s";q=2;w=10');
    const body = JSON.stringify({ account_id: 'acc_1' });
    // The gateway itself counts it: the upstream is away, so this charge is refunded.
    await gateway.ask('POST', '/api/v1/emails', { 'content-type': 'application/json' }, { body });
    expect((await decide({ route: EMAILS, account: 'acc_1' })).status).toBe(200);
    const third = await decide({ route: EMAILS, account: 'acc_1' });
    expectProblem(third, 429, 'api/too_many_requests');
    expect(ratesOf(third)).toMatchObject({ limit: 2, remaining: 0, retryAfter: expect.any(Number) });
    const peeked = await gateway.decide('/v1/decisions/peek', { route: EMAILS, account: 'acc_1' });
    expect(peeked.value.windows.map(({ used }: { used: number }) => used)).toEqual([2, 2]);
  });

  it('S11: a cost counts as so many requests, and one that never fits is 422', async () => {
    const paid = await decide({ route: 'GET /files/*', cost: 3 });
    expect(paid.value.windows).toMatchObject([{ used: 3, remaining: 1 }]);
    expectProblem(await decide({ route: 'GET /files/*', cost: 5 }), 422, 'api/cost_exceeds_limit');
    expectProblem(await decide({ route: 'GET /files/*', cost: 2 }), 429, 'api/too_many_requests');
    expect((await decide({ route: 'GET /files/*', cost: 1 }, { 'x-api-key': 'scoped' })).status).toBe(200);
  });

  it('an unlimited route passes, and is not peeked', async () => {
    expect((await decide({ route: 'GET /open' })).value).toMatchObject({ outcome: 'unlimited', windows: [] });
    const peeked = await gateway.decide('/v1/decisions/peek', { route: 'GET /open' });
    expect(peeked.value).toEqual({ windows: [], blocked: null });
  });

  it('an address is counted by its route, and perAddress limits it in front of that', async () => {
    const search = { route: 'GET /search', address: '2001:db8::1' };
    expect((await decide(search)).value.windows).toMatchObject([{ remaining: 3 }]);
    // Another address of the same client.
    expect((await decide({ ...search, address: '2001:db8::ff' })).value.windows).toMatchObject([{ remaining: 2 }]);
    for (let i = 0; i < 3; i += 1) await decide({ route: 'GET /open', address: '2001:db8::1' });
    const rejected = await decide({ route: 'GET /open', address: '2001:db8::1' });
    expectProblem(rejected, 429, 'api/too_many_requests');
    expect(ratesOf(rejected)).toMatchObject({ limit: 5 });
  });

  it('S21: a block rejects, and a peek shows it', async () => {
    const blocked = { route: EMAILS, account: 'acc_blocked' };
    expect((await gateway.decide('/v1/decisions/peek', blocked)).value.blocked).toBeNull();
    const json = { forMs: 60_000, reason: 'unpaid, ünpaid' };
    await askAdmin(gateway.adminPort, 'PUT', '/v1/block?account=acc_blocked', { json });
    const peeked = await gateway.decide('/v1/decisions/peek', blocked);
    expect(peeked.value.blocked).toMatchObject({ scope: 'account', reason: 'unpaid, ünpaid' });
    const rejected = await decide(blocked);
    expect(expectProblem(rejected, 429, 'api/too_many_requests').detail).toContain('unpaid, ünpaid');
    expect(ratesOf(rejected)).toMatchObject({ limit: undefined, retryAfter: 60 });
  });
});

describe('receipts', () => {
  const asService = { 'x-api-key': SERVICE };
  const settle = (receipt: string, cost: number, headers: OutgoingHttpHeaders = asService) =>
    gateway.decide('/v1/decisions/settle', { receipt, cost }, headers);
  const usedOf = async (account: string) => {
    const { value } = await gateway.decide('/v1/decisions/peek', { route: EMAILS, account });
    return value.windows.map(({ used }: { used: number }) => used);
  };

  it('S37: a receipt refunds or settles its charge once', async () => {
    const { receipt } = (await decide({ route: EMAILS, account: 'acc_2' })).value;
    expect(receipt).toEqual(expect.any(String));
    expect((await settle(receipt, 2)).value).toEqual({ changed: true });
    expect(await usedOf('acc_2')).toEqual([2, 2]);
    expect((await settle(receipt, 0)).value).toEqual({ changed: false });
    const second = (await decide({ route: EMAILS, account: 'acc_3' })).value.receipt;
    expect((await settle(second, 0)).value).toEqual({ changed: true });
    expect(await usedOf('acc_3')).toEqual([0, 0]);
    expect(await gateway.metrics()).toMatch(/headgate_refunds_total\{route="POST \/api\/v1\/emails"\} [1-9]/);
  });

  it("no client refunds itself, and no application another's charge", async () => {
    const { receipt } = (await decide({ route: EMAILS, account: 'acc_3' })).value;
    expectProblem(await settle(receipt, 0, {}), 403, 'errors/insufficient_permissions');
    expectProblem(await settle(receipt, 0, { 'x-api-key': 'service-of-2' }), 422, 'errors/unprocessable_entity');
    const forged = receipt.replace(/.$/, (last: string) => (last === 'A' ? 'B' : 'A'));
    for (const other of [forged, 'x', '', `1.${'a'.repeat(43)}.${'a'.repeat(43)}`])
      expectProblem(await settle(other, 0), 422, 'errors/unprocessable_entity');
    expect(await usedOf('acc_3')).toEqual([1, 1]);
    expect((await decide({ route: 'GET /open' })).value.receipt).toBeNull();
  });

  it('without a secret there are no receipts', async () => {
    const { secret: _, ...decisions } = DECISIONS;
    const other = await startDeciding({
      decisions,
      keys: [{ token: SERVICE, application: 'app_1', role: 'service' }],
      routes: [{ route: 'GET /*' }],
      limits: { default: { allMethods: ['1/1m'] } },
    });
    const name = { route: 'GET /*' };
    expect((await other.decide('/v1/decisions', name, asService)).value).toMatchObject({
      outcome: 'accepted',
      receipt: null,
    });
    const { receipt } = (await decide({ route: 'GET /search', address: '192.0.2.7' })).value;
    const refused = await other.decide('/v1/decisions/settle', { receipt, cost: 0 }, asService);
    expect(expectProblem(refused, 409, 'errors/conflict').detail).toContain('decisions.secret');
    expect((await settle(receipt, 0)).value).toEqual({ changed: true });
    await other.stop();
  });
});

describe('who may ask for what', () => {
  const ROWS: [string, object, object, number, string][] = [
    ['no key', { route: 'GET /open' }, { 'x-api-key': undefined }, 401, 'errors/missing_credentials'],
    ['an unknown key', { route: 'GET /open' }, { 'x-api-key': 'x' }, 401, 'errors/invalid_credentials'],
    [
      "another application's account",
      { route: EMAILS, account: 'acc_other' },
      {},
      404,
      'errors/invalid_resource_identifier',
    ],
    [
      'the account of a key, by name',
      { route: EMAILS, account: 'key:first' },
      {},
      404,
      'errors/invalid_resource_identifier',
    ],
    [
      'outside the scope',
      { route: EMAILS, account: 'acc_1' },
      { 'x-api-key': 'scoped' },
      403,
      'errors/resource_access_restricted',
    ],
    ['an unknown route', { route: 'GET /emails' }, {}, 404, 'errors/resource_not_found'],
    ['no account', { route: EMAILS }, {}, 422, 'errors/unprocessable_entity'],
    [
      'an account where the key counts',
      { route: 'GET /files/*', account: 'acc_1' },
      {},
      422,
      'errors/unprocessable_entity',
    ],
    ['no address', { route: 'GET /search' }, {}, 422, 'errors/unprocessable_entity'],
    ['no real address', { route: 'GET /search', address: 'localhost' }, {}, 422, 'errors/unprocessable_entity'],
    ['a cost of 0', { route: 'GET /open', cost: 0 }, {}, 422, 'errors/unprocessable_entity'],
    ['an unknown property', { route: 'GET /open', costs: 1 }, {}, 422, 'errors/unprocessable_entity'],
    [
      'another media type',
      { route: 'GET /open' },
      { 'content-type': 'text/plain' },
      415,
      'errors/unsupported_media_type',
    ],
    [
      'a key for a route that is not idempotent',
      { route: 'GET /open', idempotency: { key: 'k', request: 1 } },
      {},
      422,
      'errors/unprocessable_entity',
    ],
    [
      'a key without its request',
      { route: EMAILS, account: 'acc_1', idempotency: { key: 'k' } },
      {},
      422,
      'errors/unprocessable_entity',
    ],
    ['no key where the route requires one', { route: 'POST /paid' }, {}, 400, 'errors/missing_idempotency_key'],
  ];
  it.each(ROWS)('%s', async (_row, json, headers, status, type) => {
    expectProblem(await decide(json, headers), status, type);
  });

  it('a bearer token is a key as well; a token of the Admin API is none', async () => {
    const bearer = { 'x-api-key': undefined, authorization: `Bearer ${TOKEN}` };
    expect((await decide({ route: 'GET /open' }, bearer)).status).toBe(200);
    const ofAdmin = await decide({ route: 'GET /open' }, { 'x-api-key': TOKENS.admin });
    expectProblem(ofAdmin, 401, 'errors/invalid_credentials');
  });

  it('other paths and methods', async () => {
    const port = gateway.decisionsPort;
    const wrong = await send(port, { path: '/v1/decisions' });
    expectProblem(wrong, 405, 'errors/method_not_allowed');
    expect(wrong.headers.allow).toBe('POST');
    expectProblem(await send(port, { path: '/' }), 404, 'errors/resource_not_found');
    expect((await send(port, { path: '/readyz' })).text).toBe('{"status":"ok"}');
  });

  it('S20: a body has bounds: 413 before it is read, and in chunks when it is too long', async () => {
    const headers = { 'x-api-key': TOKEN, 'content-type': 'application/json' };
    const ask = { method: 'POST', path: '/v1/decisions', headers };
    const body = JSON.stringify({ route: 'GET /open', account: 'x'.repeat(70_000) });
    expectProblem(await send(gateway.decisionsPort, { ...ask, body }), 413, 'errors/payload_too_large');
    const raw = await openRaw(gateway.decisionsPort);
    raw.write(
      `POST /v1/decisions HTTP/1.1\r\nhost: x\r\nx-api-key: ${TOKEN}\r\ncontent-type: application/json\r\n` +
        `transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`,
    );
    expect(await raw.waitFor(1)).toMatchObject([{ status: 413 }]);
    raw.destroy();
  });
});

describe('claims', () => {
  const mail = (key: string, request: unknown = { to: 'a@example.com' }) => ({
    route: 'POST /paid',
    idempotency: { key, request },
  });
  /** Other keys than those of the other tests, whose allowance is used up. */
  const asOther = { 'x-api-key': OTHER_TOKEN };
  const claims = (action: string, json: object, headers: OutgoingHttpHeaders = asOther) =>
    gateway.decide(`/v1/claims/${action}`, json, headers);

  it('I4, I5: executes once: a retry waits, and then gets the response that the program stored', async () => {
    const first = await decide(mail('once'), asOther);
    expect(first.value).toMatchObject({ outcome: 'accepted', claim: expect.any(String), leaseMs: 60_000 });
    const { claim } = first.value;
    expectProblem(await decide(mail('once'), asOther), 409, 'errors/conflict');
    expectProblem(await decide(mail('once', { to: 'b@example.com' }), asOther), 409, 'errors/already_used');
    expect((await claims('extend', { claim })).value).toEqual({ leaseMs: 60_000 });
    const response = {
      status: 201,
      headers: { 'content-type': 'application/json', 'set-cookie': 'a=b' },
      body: '{"id":"é"}',
    };
    const done = { outcome: 'completed', response: null };
    expect((await claims('complete', { claim, response })).value).toEqual(done);
    // Its answer may have been lost.
    expect((await claims('complete', { claim, response })).value).toEqual(done);
    expectProblem(await claims('abandon', { claim }), 409, 'errors/conflict');
    expectProblem(await claims('extend', { claim }), 409, 'errors/conflict');
    // The order of properties does not count.
    const replay = await decide(mail('once'), asOther);
    expect(replay.value).toMatchObject({ outcome: 'replayed', claim: null, windows: [] });
    expect(replay.value.response).toEqual({
      status: 201,
      headers: [
        { name: 'content-type', value: 'application/json' },
        { name: 'Idempotency-Replayed', value: 'true' },
      ],
      body: '{"id":"é"}',
      encoding: 'utf-8',
    });
  });

  it('I6: an abandoned key is executed by the retry, and its first program can do nothing more', async () => {
    const { claim } = (await decide(mail('again'), asOther)).value;
    expect((await claims('abandon', { claim })).value).toEqual({ outcome: 'released' });
    expect((await claims('abandon', { claim })).value).toEqual({ outcome: 'released' });
    const second = (await decide(mail('again'), asOther)).value;
    expect(second.claim).not.toBe(claim);
    expectProblem(await claims('abandon', { claim }), 409, 'errors/conflict');
    expectProblem(await claims('extend', { claim }), 409, 'errors/conflict');
    expect((await claims('complete', { claim: second.claim, response: { status: 204 } })).status).toBe(200);
  });

  it('I2: a claim is of its application, and a text that is none is refused', async () => {
    const { claim } = (await decide({ ...mail('mine'), route: 'POST /large' }, asOther)).value;
    expectProblem(await claims('abandon', { claim }, {}), 404, 'errors/resource_not_found');
    expectProblem(await claims('abandon', { claim: 'x' }), 422, 'errors/unprocessable_entity');
    expectProblem(await claims('complete', { claim, response: { status: 429 } }), 422, 'errors/unprocessable_entity');
    const misused = { status: 200, headers: { 'bad name': 'x' }, body: '' };
    expectProblem(await claims('complete', { claim, response: misused }), 422, 'errors/unprocessable_entity');
  });

  it('I7: a body over the bound of its route is not stored, and retries learn its status', async () => {
    const large = { ...mail('large'), route: 'POST /large' };
    const { claim } = (await decide(large, asOther)).value;
    const response = { status: 200, body: Buffer.from([0, 255, 1, 2, 3]).toString('base64'), encoding: 'base64' };
    expect((await claims('complete', { claim, response })).value).toEqual({ outcome: 'completed', response: null });
    const retry = expectProblem(await decide(large, asOther), 409, 'errors/already_used');
    expect(retry.detail).toContain('status 200');
  });

  it('I4: a body that is no text is replayed in base64', async () => {
    const small = { ...mail('bytes'), route: 'POST /large' };
    const { claim } = (await decide(small, asOther)).value;
    const body = Buffer.from([255, 0]).toString('base64');
    await claims('complete', { claim, response: { status: 200, body, encoding: 'base64' } });
    expect((await decide(small, asOther)).value.response).toMatchObject({ body, encoding: 'base64' });
  });

  it('I6: a rejected request holds no key', async () => {
    const limited = mail('limited');
    expectProblem(await decide({ ...limited, cost: 4 }, asOther), 429, 'api/too_many_requests');
    expect((await decide(limited, asOther)).value.claim).toEqual(expect.any(String));
  });
});

it('log and metrics: one line per request with its door, and no header, account or key', async () => {
  const of = (status: number) =>
    gateway.lines().find((line) => line.door === 'json' && line.status === status && line.route === EMAILS);
  const line = await eventually(() => of(429), 'the line of the rejection');
  expect(line).toMatchObject({ method: 'POST', decision: 'rejected', msg: 'request' });
  expect(JSON.stringify(gateway.lines())).not.toMatch(/acc_1|once|example\.com/);
  const metrics = await gateway.metrics();
  expect(metrics).toMatch(/headgate_decision_requests_total\{door="json",status="200"\} [1-9]/);
  expect(metrics).toMatch(
    /headgate_decisions_total\{route="POST \/api\/v1\/emails",limit="route",outcome="rejected"\} [1-9]/,
  );
  expect(metrics).not.toContain('headgate_requests_total{route="POST /api/v1/emails",status="429"}');
});
