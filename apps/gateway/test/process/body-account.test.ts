/** `account: "body.NAME"`: a JSON property, a form field or a multipart field. */
import { randomBytes } from 'node:crypto';
import { field, file, multipart, multipartType, type WrittenPart } from 'headgate-testbed/bodies';
import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Config,
  configOf,
  expectProblem,
  type Gateway,
  NO_RATES,
  ratesOf,
  sha256,
  startGateway,
  TOKEN,
} from '../support/gateway.ts';

const PATH = '/api/v1/emails';
const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';
let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(bodyConfig());
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
  upstream.behave(answer());
});

/** Without idempotency: an account in the body does not need it. */
function bodyConfig(rest: Config = {}): Config {
  return configOf(upstream.url, {
    keys: [
      { sha256: sha256(TOKEN), application: 'app_1', role: 'account' },
      { token: 'scoped', application: 'app_1', role: 'scoped', scope: 'scp_a' },
    ],
    accounts: [
      ...['acc_1', 'acc_2', 'acc 3+é', '日本', '5'].map((id) => ({ id, application: 'app_1', provider: 'mock' })),
      { id: 'acc_a', application: 'app_1', provider: 'mock', scope: 'scp_a' },
      { id: 'acc_other', application: 'app_2', provider: 'mock' },
    ],
    routes: [{ route: `POST ${PATH}`, account: 'body.account_id' }],
    limits: { default: { allMethods: ['1000/1h'] }, accounts: { acc_2: { allMethods: ['222/1h'] } } },
    ...rest,
  });
}

const ask = (type: string | undefined, body: string | Buffer, headers = {}) =>
  gateway.ask('POST', PATH, { 'content-type': type, ...headers }, { body });
const askParts = (...parts: WrittenPart[]) => ask(multipartType('edge'), multipart({ boundary: 'edge', parts }));

const big = file('attachments', 'Zürich.bin', randomBytes(2_500_000), 'application/octet-stream');
const parts = (...written: WrittenPart[]) => multipart({ boundary: 'edge', parts: written });

describe('the account is found', () => {
  it.each<[string, string, string | Buffer]>([
    ['a JSON property', JSON_TYPE, '{"account_id":"acc_2","to":"x"}'],
    ['the last property', JSON_TYPE, '{"to":["account_id"],"deep":{"account_id":"acc_1"},"account_id":"acc_2"}'],
    ['written with escapes', JSON_TYPE, '{"\\u0061ccount_id":"\\u0061cc_2"}'],
    ['a JSON type with a suffix and a charset', 'application/vnd.mail+json; charset=UTF-8', '{"account_id":"acc_2"}'],
    ['a form field', FORM, 'to=x&account_id=acc_2'],
    ['a form field, encoded', FORM, 'account%5Fid=acc%5f2&to=x'],
    ['a multipart field', multipartType('edge'), parts(field('account_id', 'acc_2'), field('to', 'x'))],
    ['after an attachment', multipartType('edge'), parts(big, field('account_id', 'acc_2'))],
    [
      'between two attachments',
      multipartType('"edge"'),
      parts(big, field('account_id', 'acc_2'), file('a', 'b', 'account_id')),
    ],
  ])('%s, and its own limit applies; the body arrives byte for byte', async (_title, type, body) => {
    const reply = await ask(type, body);
    expect({ status: reply.status, ...ratesOf(reply) }).toMatchObject({ status: 200, limit: 222 });
    const sent = Buffer.from(body);
    expect(upstream.last().body().equals(sent)).toBe(true);
    expect(upstream.last().headers).toMatchObject({ 'content-type': type, 'content-length': String(sent.length) });
  });

  it.each([
    ['JSON', JSON_TYPE, (id: string) => JSON.stringify({ account_id: id })],
    ['a form', FORM, (id: string) => new URLSearchParams({ account_id: id }).toString()],
    ['multipart', multipartType('edge'), (id: string) => parts(field('account_id', id))],
  ])('with any name: %s', async (_title, type, write) => {
    for (const id of ['acc 3+é', '日本', '5']) expect((await ask(type, write(id))).status).toBe(200);
  });

  it('twenty at once, each with its own body', async () => {
    const bodies = Array.from({ length: 20 }, (_, i) =>
      JSON.stringify({ account_id: 'acc_1', i, pad: 'x'.repeat(i * 10_000) }),
    );
    const statuses = await Promise.all(bodies.map(async (body) => (await ask(JSON_TYPE, body)).status));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(upstream.seen.map((seen) => seen.body().toString()).sort()).toEqual(bodies.sort());
  });
});

describe('422 errors/unprocessable_entity, nothing charged, nothing forwarded', () => {
  it.each<[string, string | undefined, string | Buffer]>([
    ['JSON without it', JSON_TYPE, '{"to":"x"}'],
    ['JSON, only deeper', JSON_TYPE, '{"a":{"account_id":"acc_1"}}'],
    ['JSON, empty', JSON_TYPE, '{"account_id":""}'],
    ['JSON, twice', JSON_TYPE, '{"account_id":"acc_1","account_id":"acc_2"}'],
    ['JSON, the same twice, once with an escape', JSON_TYPE, '{"account_id":"acc_1","account\\u005fid":"acc_1"}'],
    ['JSON, a number', JSON_TYPE, '{"account_id":5}'],
    ['JSON, null', JSON_TYPE, '{"account_id":null}'],
    ['JSON, a list', JSON_TYPE, '{"account_id":["acc_1"]}'],
    ['JSON, an object', JSON_TYPE, '{"account_id":{"id":"acc_1"}}'],
    ['JSON, not an object', JSON_TYPE, '["account_id","acc_1"]'],
    ['JSON, no body', JSON_TYPE, ''],
    ['JSON, malformed', JSON_TYPE, '{"account_id":"acc_1"'],
    ['JSON, malformed after it', JSON_TYPE, '{"account_id":"acc_1","a":nope}'],
    ['JSON, and more after it', JSON_TYPE, '{"account_id":"acc_1"}{}'],
    ['JSON, not UTF-8', JSON_TYPE, Buffer.from('{"account_id":"acc_1","a":"\xff"}', 'latin1')],
    ['a form without it', FORM, 'to=x'],
    ['a form, empty', FORM, 'account_id=&to=x'],
    ['a form, without a value', FORM, 'account_id'],
    ['a form, twice', FORM, 'account_id=acc_1&account_id=acc_2'],
    ['a form, twice, once encoded', FORM, 'account_id=acc_1&account%5fid=acc_1'],
    ['a form, no body', FORM, ''],
    ['multipart without it', multipartType('edge'), parts(field('to', 'x'))],
    ['multipart, empty', multipartType('edge'), parts(field('account_id', ''))],
    ['multipart, twice', multipartType('edge'), parts(field('account_id', 'acc_1'), big, field('account_id', 'acc_1'))],
    ['multipart, a file of that name', multipartType('edge'), parts(file('account_id', 'a.txt', 'acc_1'))],
    ['multipart, cut off', multipartType('edge'), parts(field('account_id', 'acc_1')).subarray(0, -6)],
    ['multipart, another boundary', multipartType('other'), parts(field('account_id', 'acc_1'))],
    ['multipart without a boundary', 'multipart/form-data', parts(field('account_id', 'acc_1'))],
    ['multipart, no body', multipartType('edge'), ''],
    ['text', 'text/plain', 'account_id=acc_1'],
    ['XML', 'application/xml', '<account_id>acc_1</account_id>'],
    ['no type', undefined, '{"account_id":"acc_1"}'],
    ['an invalid type', 'json', '{"account_id":"acc_1"}'],
  ])('%s', async (_title, type, body) => {
    const reply = await ask(type, body);
    expectProblem(reply, 422, 'errors/unprocessable_entity');
    expect(ratesOf(reply)).toEqual(NO_RATES);
    expect(upstream.seen).toHaveLength(0);
  });

  it('a compressed body', async () => {
    const reply = await ask(JSON_TYPE, '{"account_id":"acc_1"}', { 'content-encoding': 'gzip' });
    expectProblem(reply, 422, 'errors/unprocessable_entity');
  });

  it('two content types', async () => {
    const reply = await ask(undefined, '{"account_id":"acc_1"}', { 'content-type': [JSON_TYPE, FORM] });
    expect([400, 422]).toContain(reply.status);
    expect(upstream.seen).toHaveLength(0);
  });
});

describe('bounds: 422 past them, accepted at them', () => {
  const account = field('account_id', 'acc_1');
  const many = (count: number) => Array.from({ length: count - 1 }, (_, i) => field(`f${i}`, ''));
  const deep = (depth: number) => `{"account_id":"acc_1","x":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  const wide = (bytes: number): WrittenPart => ({
    headers: ['Content-Disposition: form-data; name="x"', `X-Pad: ${'p'.repeat(bytes)}`],
    content: '',
  });

  it('1,000 parts; 1,001', async () => {
    expect((await askParts(...many(1_000), account)).status).toBe(200);
    expectProblem(await askParts(...many(1_001), account), 422, 'errors/unprocessable_entity');
    expectProblem(await askParts(account, ...many(10_000)), 422, 'errors/unprocessable_entity');
  });

  it('15 KiB of headers in a part; 17 KiB; 1 MiB', async () => {
    expect((await askParts(wide(15 * 1024), account)).status).toBe(200);
    expectProblem(await askParts(wide(17 * 1024), account), 422, 'errors/unprocessable_entity');
    expectProblem(await askParts(account, wide(1_048_576)), 422, 'errors/unprocessable_entity');
  });

  it('JSON of a depth of 64; 65; 100,000', async () => {
    expect((await ask(JSON_TYPE, deep(64))).status).toBe(200);
    expectProblem(await ask(JSON_TYPE, deep(65)), 422, 'errors/unprocessable_entity');
    expectProblem(await ask(JSON_TYPE, deep(100_000)), 422, 'errors/unprocessable_entity');
  });
});

describe('access', () => {
  const of = (id: string) => JSON.stringify({ account_id: id });

  it.each([
    ['an unknown account', 'nobody', TOKEN, 404, 'errors/invalid_resource_identifier'],
    ['a name that every object has', '__proto__', TOKEN, 404, 'errors/invalid_resource_identifier'],
    ["another application's", 'acc_other', TOKEN, 404, 'errors/invalid_resource_identifier'],
    ['outside the scope', 'acc_1', 'scoped', 403, 'errors/resource_access_restricted'],
  ])('%s', async (_title, id, token, status, type) => {
    const reply = await ask(JSON_TYPE, of(id), { 'x-api-key': token });
    expectProblem(reply, status, type);
    expect(ratesOf(reply)).toEqual(NO_RATES);
    expect(upstream.seen).toHaveLength(0);
  });

  it('inside the scope', async () => {
    expect((await ask(JSON_TYPE, of('acc_a'), { 'x-api-key': 'scoped' })).status).toBe(200);
  });

  it.each([
    ['401', PATH, {}, 'errors/missing_credentials'],
    ['404', '/nowhere', { 'x-api-key': TOKEN }, 'errors/resource_not_found'],
    ['422', PATH, { 'x-api-key': TOKEN, 'content-type': 'text/plain' }, 'errors/unprocessable_entity'],
  ])('%s is answered before the body is read', async (status, path, headers, type) => {
    const connection = await openRaw(gateway.port);
    const length = { 'content-type': JSON_TYPE, 'content-length': '100' };
    connection.write(rawRequest('POST', path, { ...length, ...(headers as Record<string, string>) }));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as never, Number.parseInt(status, 10), type);
    const expecting = await openRaw(gateway.port);
    expecting.write(
      rawRequest('POST', path, { ...length, expect: '100-continue', ...(headers as Record<string, string>) }),
    );
    await expecting.waitFor(1);
    expecting.destroy();
    expect(expecting.received()).not.toContain('100 Continue');
  });

  it('Expect: 100-continue gets 100 if the body must be read, even if the request is then refused', async () => {
    for (const [id, status] of [
      ['acc_1', 200],
      ['nobody', 404],
    ] as const) {
      const connection = await openRaw(gateway.port);
      const headers = { 'x-api-key': TOKEN, 'content-type': JSON_TYPE, expect: '100-continue' };
      connection.write(rawRequest('POST', PATH, { ...headers, 'content-length': String(of(id).length) }));
      await eventually(() => connection.received().includes('100 Continue'), '100 Continue');
      connection.write(of(id));
      const [reply] = await connection.waitFor(1);
      connection.destroy();
      expect(reply?.status).toBe(status);
    }
  });
});
