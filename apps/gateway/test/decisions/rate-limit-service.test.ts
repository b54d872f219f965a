/** Envoy's rate limit service, called by a client that is made from the published API of Envoy. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  type Client,
  credentials,
  loadPackageDefinition,
  makeGenericClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterFile } from 'headgate-testbed/after-file';
import { eventually, send } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import protobuf from 'protobufjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { ADMIN, askAdmin } from '../support/admin.ts';
import { sha256, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const DEPS = join(dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json')), 'deps');
const published = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: ['envoy-api', 'googleapis', 'protoc-gen-validate', 'xds'].map((folder) => join(DEPS, folder)),
  longs: Number,
  enums: String,
  defaults: true,
});
type Entries = Record<string, string>;
interface Answer {
  readonly overallCode: string;
  readonly statuses: readonly {
    code: string;
    limitRemaining: number;
    currentLimit: object | null;
    durationUntilReset: { seconds: number } | null;
  }[];
  readonly responseHeadersToAdd: readonly { key: string; value: string }[];
  readonly rawBody: Buffer;
}

const CHATS = 'GET /chats';
const rule = (keys: string[], route: string, account: string, more: object = {}) => ({
  entries: keys.map((key) => ({ key })),
  route,
  account,
  ...more,
});
const CONFIG = {
  admin: ADMIN,
  keys: [{ sha256: sha256(TOKEN), name: 'first', application: 'app_1' }],
  accounts: ['acc_1', 'acc_2', 'acc_3', 'acc_4', 'acc_5', 'acc_6', 'acc_7'].map((id) => ({ id, application: 'app_1' })),
  routes: [
    { route: CHATS, account: 'query.account_id' },
    { route: 'GET /search', account: 'address' },
    { route: 'GET /keyed', account: 'key' },
    { route: 'POST /shadowed', account: 'query.account_id' },
  ],
  limits: {
    default: { allMethods: ['5/1m'] },
    accounts: { acc_5: { allMethods: ['2/90s'] } },
  },
  rateLimitService: {
    port: 0,
    domains: {
      api: [
        rule(['account'], CHATS, '{account}'),
        { ...rule([], CHATS, 'acc_4'), entries: [{ key: 'tier', value: 'free' }] },
        rule(['remote_address'], 'GET /search', '{remote_address}'),
        rule(['api_key'], 'GET /keyed', '{api_key}'),
        rule(['shadowed'], 'POST /shadowed', '{shadowed}', { shadow: true }),
      ],
    },
  },
};
let gateway: InProcess;
let client: Client;

// biome-ignore lint/suspicious/noExplicitAny: the definition is made at run time
const clientOf = (port: number): any => {
  // biome-ignore lint/suspicious/noExplicitAny: the same
  const { RateLimitService } = (loadPackageDefinition(published) as any).envoy.service.ratelimit.v3;
  const made = new RateLimitService(`127.0.0.1:${port}`, credentials.createInsecure());
  afterFile(() => made.close());
  return made;
};

beforeAll(async () => {
  gateway = await startInProcess(CONFIG);
  client = clientOf(gateway.rateLimitPort);
});

const descriptor = (entries: Entries) => ({
  entries: Object.entries(entries).map(([key, value]) => ({ key, value })),
});

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit';

function call(descriptors: object[], more: object = {}, to: Client = client): Promise<Answer> {
  const request = { domain: 'api', descriptors, ...more };
  return new Promise((resolve, reject) => {
    // biome-ignore lint/suspicious/noExplicitAny: the definition is made at run time
    (to as any).ShouldRateLimit(request, (error: ServiceError | null, answer: Answer) =>
      error === null ? resolve(answer) : reject(error),
    );
  });
}

/** The version of the API in the package lacks `hits_addend` of a descriptor. */
const { root } = protobuf.parse(`
syntax = "proto3";
message Entry { string key = 1; string value = 2; }
message Hits { uint64 value = 1; }
message Descriptor { repeated Entry entries = 1; Hits hits_addend = 3; }
message Request { string domain = 1; repeated Descriptor descriptors = 2; uint32 hits_addend = 3; }`);

/** Sends bytes as they are. */
function callRaw(bytes: Buffer): Promise<Answer> {
  const Raw = makeGenericClientConstructor({}, 'raw');
  const raw = new Raw(`127.0.0.1:${gateway.rateLimitPort}`, credentials.createInsecure());
  afterFile(() => raw.close());
  // biome-ignore lint/suspicious/noExplicitAny: the definition is made at run time
  const { responseDeserialize } = (published as any)['envoy.service.ratelimit.v3.RateLimitService'].ShouldRateLimit;
  const same = (given: Buffer): Buffer => given;
  return new Promise((resolve, reject) => {
    raw.makeUnaryRequest<Buffer, Answer>(PATH, same, responseDeserialize, bytes, (error, value) =>
      error === null ? resolve(value as Answer) : reject(error),
    );
  });
}

/** A call with one descriptor, which has a cost of its own. */
function callWithHits(entries: Entries, value: number, more: object = {}): Promise<Answer> {
  const Request = root.lookupType('Request');
  const message = { domain: 'api', descriptors: [{ ...descriptor(entries), hitsAddend: { value } }], ...more };
  return callRaw(Buffer.from(Request.encode(Request.fromObject(message)).finish()));
}

const fieldsOf = ({ responseHeadersToAdd }: Answer) =>
  Object.fromEntries(responseHeadersToAdd.map(({ key, value }) => [key, value]));
const leftOf = async (account: string) => {
  const { text } = await askAdmin(
    gateway.adminPort,
    'GET',
    `/v1/windows?account=${account}&route=${encodeURIComponent(CHATS)}`,
  );
  return JSON.parse(text).routes[0].windows[0].remaining;
};

it('accepts with the fields of the gateway and the state of the window, and then rejects', async () => {
  const first = await call([descriptor({ account: 'acc_1' })]);
  expect(first).toMatchObject({
    overallCode: 'OK',
    statuses: [
      { code: 'OK', limitRemaining: 4, currentLimit: { requestsPerUnit: 5, unit: 'MINUTE', name: 'all-methods' } },
    ],
  });
  expect(fieldsOf(first)).toMatchObject({ 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '4' });
  for (let i = 0; i < 4; i += 1) await call([descriptor({ account: 'acc_1' })]);
  const rejected = await call([descriptor({ account: 'acc_1' })]);
  expect(rejected).toMatchObject({ overallCode: 'OVER_LIMIT', statuses: [{ code: 'OVER_LIMIT', limitRemaining: 0 }] });
  expect(rejected.statuses[0]?.durationUntilReset?.seconds).toBeGreaterThan(50);
  expect(fieldsOf(rejected)).toMatchObject({
    'retry-after': expect.any(String),
    'x-ratelimit-remaining': '0',
    'content-type': 'application/json',
  });
  expect(JSON.parse(rejected.rawBody.toString())).toMatchObject({ status: 429, type: 'api/too_many_requests' });
  // The proxy of the gateway counts in the same windows.
  const { status: http } = await gateway.ask('GET', '/chats?account_id=acc_1');
  expect(http).toBe(429);
});

it('S5: of several descriptors all are charged, or none', async () => {
  const both = [descriptor({ account: 'acc_2' }), descriptor({ account: 'acc_3' })];
  const accepted = await call(both);
  expect(accepted).toMatchObject({ overallCode: 'OK', statuses: [{ limitRemaining: 4 }, { limitRemaining: 4 }] });
  await call([descriptor({ account: 'acc_3' })], { hitsAddend: 4 });
  const rejected = await call([...both, descriptor({ account: 'acc_6' })]);
  expect(rejected.overallCode).toBe('OVER_LIMIT');
  expect(rejected.statuses.map(({ code, limitRemaining }) => [code, limitRemaining])).toEqual([
    ['OK', 4],
    ['OVER_LIMIT', 0],
    ['OK', 5],
  ]);
  expect([await leftOf('acc_2'), await leftOf('acc_3'), await leftOf('acc_6')]).toEqual([4, 0, 5]);
});

it('S11: hits_addend is the cost: that of the call, or that of the descriptor; 0 charges nothing', async () => {
  expect((await callWithHits({ tier: 'free' }, 2, { hitsAddend: 4 })).statuses).toMatchObject([{ limitRemaining: 3 }]);
  expect((await call([descriptor({ tier: 'free' })], { hitsAddend: 3 })).statuses).toMatchObject([
    { limitRemaining: 0 },
  ]);
  const asked = await callWithHits({ account: 'acc_6' }, 0);
  expect(asked).toMatchObject({ overallCode: 'OK', statuses: [{ limitRemaining: 5 }] });
  expect(await callWithHits({ tier: 'free' }, 0)).toMatchObject({ overallCode: 'OVER_LIMIT' });
  // It never fits, and Envoy has no other code for that.
  const never = await call([descriptor({ account: 'acc_6' })], { hitsAddend: 6 });
  expect(never.overallCode).toBe('OVER_LIMIT');
  expect(fieldsOf(never)['retry-after']).toBeUndefined();
  expect(await leftOf('acc_6')).toBe(5);
});

it('a window that is no unit of Envoy shows its rest only', async () => {
  const answer = await call([descriptor({ account: 'acc_5' })]);
  expect(answer.statuses).toMatchObject([{ limitRemaining: 1, currentLimit: null }]);
});

it('addresses and keys are counted as the gateway counts them', async () => {
  const at = (remote_address: string) => call([descriptor({ remote_address })]);
  expect((await at('2001:db8::1')).statuses[0]?.limitRemaining).toBe(4);
  expect((await at('2001:db8::2')).statuses[0]?.limitRemaining).toBe(3);
  expect((await call([descriptor({ api_key: 'first' })])).statuses[0]?.limitRemaining).toBe(4);
});

it('an account that the config does not have is over its limit, so that no client gets free by inventing one', async () => {
  const unknown = [
    { account: 'acc_99' },
    { account: 'key:first' },
    { account: '' },
    { remote_address: 'localhost' },
    { api_key: 'x' },
  ];
  for (const entries of unknown)
    expect(await call([descriptor(entries)])).toMatchObject({
      overallCode: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT' }],
    });
});

it('a descriptor that the config does not have is not limited, with a warning and a metric', async () => {
  const others = [{ tier: 'gold' }, { account: 'acc_7', more: 'x' }, { nothing: 'x' }];
  for (const entries of others)
    expect(await call([descriptor(entries)])).toMatchObject({ overallCode: 'OK', statuses: [{ code: 'OK' }] });
  expect(await call([descriptor({ account: 'acc_7' })], { domain: 'elsewhere' })).toMatchObject({ overallCode: 'OK' });
  const line = await eventually(
    () => gateway.lines().find(({ level, msg }) => level === 40 && String(msg).includes('descriptor')),
    'the warning',
  );
  expect(line).toMatchObject({ domain: 'api', keys: ['tier'] });
  const metrics = await gateway.metrics();
  expect(metrics).toContain('headgate_rate_limit_descriptors_total{domain="api",outcome="unmatched"} 3');
  expect(metrics).toContain('headgate_rate_limit_descriptors_total{domain="unknown",outcome="unmatched"} 1');
});

it('a shadow counts, and rejects nothing', async () => {
  for (let i = 0; i < 5; i += 1) await call([descriptor({ shadowed: 'acc_7' })]);
  const sixth = await call([descriptor({ shadowed: 'acc_7' }), descriptor({ account: 'acc_7' })]);
  expect(sixth).toMatchObject({
    overallCode: 'OK',
    statuses: [
      { code: 'OK', limitRemaining: 0 },
      { code: 'OK', limitRemaining: 4 },
    ],
  });
  expect(await gateway.metrics()).toContain('headgate_rate_limit_descriptors_total{domain="api",outcome="shadow"} 1');
});

describe('what is refused', () => {
  const many = Array.from({ length: 33 }, () => descriptor({ account: 'acc_6' }));
  it.each<[string, object[], object]>([
    ['no descriptor', [], {}],
    ['no domain', [descriptor({ account: 'acc_6' })], { domain: '' }],
    ['33 descriptors', many, {}],
  ])('%s', async (_row, descriptors, more) => {
    await expect(call(descriptors, more)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  it('a message that is too long, or malformed', async () => {
    await expect(call([descriptor({ account: 'x'.repeat(70_000) })])).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
    await expect(callRaw(Buffer.from([0x12, 0xff]))).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(await leftOf('acc_6')).toBe(5);
  });

  it('S17: UNAVAILABLE if Redis is down and the policy is to refuse', async () => {
    const redis = await startRedis();
    const store = { store: `redis://127.0.0.1:${redis.port}/0`, onStoreFailure: 'refuse' };
    const own = await startInProcess({ ...CONFIG, ...store });
    const to = clientOf(own.rateLimitPort);
    expect(await call([descriptor({ account: 'acc_1' })], {}, to)).toMatchObject({ overallCode: 'OK' });
    await redis.stop();
    await expect(call([descriptor({ account: 'acc_1' })], {}, to)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    await own.stop();
  });
});

it('a reload changes the descriptors, and stopping ends the listener', async () => {
  const own = await startInProcess(CONFIG);
  const to = clientOf(own.rateLimitPort);
  const domains = { other: [rule(['who'], CHATS, '{who}')] };
  const wanted = { ...CONFIG, listen: own.gateway.address, rateLimitService: { port: 0, domains } };
  const report = await own.gateway.reload(checkConfig(wanted, 'test'));
  expect(report.changed).toContain('rateLimitService.domains');
  const ask = () => call([descriptor({ who: 'acc_1' })], { domain: 'other' }, to);
  expect(await ask()).toMatchObject({ statuses: [{ limitRemaining: 4 }] });
  expect(await own.stop()).toBe(0);
  await expect(ask()).rejects.toMatchObject({ code: status.UNAVAILABLE });
});

it('limits nothing that can never apply: wrong descriptors are faults at the start', () => {
  const wrong = (service: object, more: object = {}) => {
    try {
      checkConfig({ ...CONFIG, ...more, rateLimitService: { ...CONFIG.rateLimitService, ...service } }, 'test');
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const domain = (...rules: object[]) => ({ domains: { api: rules } });
  expect(wrong(domain(rule(['a'], 'GET /chat', '{a}')))).toContain('did you mean "GET /chats"');
  expect(wrong(domain(rule(['a'], CHATS, '{b}')))).toContain(
    'rateLimitService.domains.api[0].account: no entry has the key "b"',
  );
  expect(wrong(domain(rule(['a'], CHATS, 'acc_99')))).toContain('nothing that the route counts has this name');
  expect(wrong(domain(rule(['a'], 'GET /keyed', 'second')))).toContain('nothing that the route counts has this name');
  const unlimited = { routes: [...CONFIG.routes, { route: 'GET /free', account: 'none' }] };
  expect(wrong(domain(rule(['a'], 'GET /free', '{a}')), unlimited)).toContain('nothing is limited');
  expect(wrong({ host: '0.0.0.0' })).toContain('rateLimitService.host: anybody who reaches "0.0.0.0"');
  expect(wrong({ host: '0.0.0.0', insecure: true })).toBe('');
  expect(wrong({ port: 8081 }, { admin: { port: 8081 } })).toContain('also the port of admin');
});

it('log: one line per call, without any value of a descriptor', async () => {
  const line = await eventually(() => gateway.lines().find(({ door }) => door === 'envoy'), 'the line of a call');
  expect(line).toMatchObject({ level: 30, domain: 'api', code: 'OK', msg: 'rate limit call' });
  expect(JSON.stringify(gateway.lines().filter(({ door }) => door === 'envoy'))).not.toContain('acc_');
  expect((await send(gateway.adminPort, { path: '/metrics' })).text).toMatch(
    /headgate_decision_requests_total\{door="envoy",status="OVER_LIMIT"\} [1-9]/,
  );
});
