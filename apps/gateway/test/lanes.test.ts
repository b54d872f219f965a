/** S28: lanes of routes and API keys. */
import { startUpstream } from 'headgate-testbed/upstream';
import { beforeAll, describe, expect, it } from 'vitest';
import { ADMIN, askAdmin } from './support/admin.ts';
import { checkConfig } from './support/check-config.ts';
import { type DecidingGateway, startDeciding } from './support/decisions.ts';
import { ratesOf } from './support/gateway.ts';

const KEYS = [
  { name: 'person', token: 'token-of-a-person', application: 'app' },
  { name: 'importer', token: 'token-of-an-importer', application: 'app', lane: 'bulk' },
  { name: 'night', token: 'token-of-the-night', application: 'app', lane: 'batch' },
];
const ROUTES = [
  { route: 'POST /send', account: 'application' },
  { route: 'POST /send-all', account: 'application', lane: 'bulk' },
];
const LIMITS = {
  default: { allMethods: { windows: ['10/1h'], scope: 'account' } },
  lanes: { bulk: 0.9, batch: 0.5 },
};
const [PERSON, IMPORTER, NIGHT] = KEYS.map(({ token }) => ({ 'x-api-key': token }));

describe('a gateway with lanes', () => {
  let gateway: DecidingGateway;
  const limitOf = async (path: string, headers: typeof PERSON) =>
    ratesOf(await gateway.ask('POST', path, headers)).limit;

  beforeAll(async () => {
    const { url } = await startUpstream();
    const config = { admin: ADMIN, keys: KEYS, routes: ROUTES, limits: LIMITS, log: { account: true } };
    gateway = await startDeciding({ upstream: url, ...config });
  });

  it('a route or a key has a lane; of two lanes the smaller share applies, so none lifts the other', async () => {
    expect([
      await limitOf('/send', PERSON),
      await limitOf('/send', IMPORTER),
      await limitOf('/send-all', PERSON),
      await limitOf('/send-all', IMPORTER),
      await limitOf('/send', NIGHT),
      await limitOf('/send-all', NIGHT),
    ]).toEqual([10, 9, 9, 9, 5, 5]);
  });

  it('the last tenth is left to requests without a lane', async () => {
    // Five of the six before were accepted.
    const statuses = async (headers: typeof PERSON, times: number) => {
      const all: number[] = [];
      for (let i = 0; i < times; i++) all.push((await gateway.ask('POST', '/send', headers)).status);
      return all;
    };
    expect(await statuses(IMPORTER, 5)).toEqual([200, 200, 200, 200, 429]);
    expect(await statuses(PERSON, 2)).toEqual([200, 429]);
  });

  it('programs can name a lane in their question; the smallest share applies', async () => {
    await askAdmin(gateway.adminPort, 'POST', '/v1/windows/reset', {
      json: { account: 'application:app', reason: 'a test' },
    });
    const maxOf = async (path: string, body: object, headers: typeof PERSON) =>
      (await gateway.decide(path, body, headers)).value.windows[0].max;
    const route = 'POST /send';
    expect(await maxOf('/v1/decisions', { route }, PERSON)).toBe(10);
    expect(await maxOf('/v1/decisions', { route, lane: 'batch' }, IMPORTER)).toBe(5);
    expect(await maxOf('/v1/decisions', { route, lane: 'bulk' }, NIGHT)).toBe(5);
    expect(await maxOf('/v1/decisions/peek', { route: 'POST /send-all' }, PERSON)).toBe(9);
    const unknown = await gateway.decide('/v1/decisions', { route, lane: 'bulky' }, PERSON);
    expect([unknown.status, unknown.value.detail]).toEqual([422, expect.stringContaining('lane')]);
  });

  it('metrics, the log, keys, events and traces know it', async () => {
    const metrics = await gateway.metrics();
    expect(metrics).toMatch(
      /^headgate_decisions_total\{route="POST \/send",limit="all-methods",outcome="accepted",lane="bulk"\} \d+$/m,
    );
    expect(metrics).toMatch(
      /^headgate_decisions_total\{route="POST \/send",limit="all-methods",outcome="accepted"\} \d+$/m,
    );
    const reply = await gateway.ask('POST', '/send', NIGHT);
    const id = reply.headers['x-request-id'];
    const trace = await askAdmin(gateway.adminPort, 'GET', `/v1/decisions?req_id=${id}`);
    expect(JSON.parse(trace.text)).toMatchObject({ lane: 'batch', trace: [{ max: 5 }] });
    const keys = await askAdmin(gateway.adminPort, 'GET', '/v1/keys');
    expect(JSON.parse(keys.text).keys.map(({ lane }: { lane: string | null }) => lane)).toEqual([
      null,
      'bulk',
      'batch',
    ]);
    const config = await askAdmin(gateway.adminPort, 'GET', '/v1/config');
    expect(JSON.parse(config.text)).toMatchObject({ limits: { lanes: LIMITS.lanes } });
    await expect.poll(() => gateway.lines().find(({ req_id }) => req_id === id)).toMatchObject({ lane: 'batch' });
  });

  it('the windows of an account and an explanation show the share of the lane of a route', async () => {
    const account = 'application:app';
    const windows = await askAdmin(gateway.adminPort, 'GET', `/v1/windows?account=${account}`);
    expect(JSON.parse(windows.text).routes).toMatchObject([
      { lane: null, windows: [{ max: 10 }] },
      { lane: 'bulk', windows: [{ max: 9, limitMax: 10 }] },
    ]);
    expect(JSON.parse(windows.text).routes[0].windows[0]).not.toHaveProperty('limitMax');
    const json = { account, route: 'POST /send-all', cost: 10 };
    const told = await askAdmin(gateway.adminPort, 'POST', '/v1/explain', { json });
    expect(JSON.parse(told.text)).toMatchObject({ status: 422, windows: [{ max: 9 }] });
  });
});

describe('a config with lanes', () => {
  const check = (config: object) => checkConfig({ keys: KEYS, routes: ROUTES, limits: LIMITS, ...config });

  it('a lane that limits.lanes does not have is a fault; that of a key is not shown', async () => {
    const limits = { ...LIMITS, lanes: { bulk: 0.9, night: 1 } };
    const routes = [{ ...ROUTES[0], lane: 'bulky' }];
    const { code, all } = await check({ limits, routes });
    expect(code).toBe(2);
    expect(all).toContain('routes[0].lane: limits.lanes has no "bulky", did you mean "bulk"?');
    expect(all).toContain('keys[2].lane: limits.lanes has no such lane: bulk, night');
    expect(all).not.toContain('batch');
  });

  it.each([0, -1, 1.5, '0.9', null])('a share of %s is a fault', async (share) => {
    const { code, all } = await check({ limits: { ...LIMITS, lanes: { bulk: share, batch: 0.5 } } });
    expect([code, all]).toEqual([2, expect.stringContaining('limits.lanes.bulk: must be ')]);
  });

  it('a candidate must have the lanes of the routes and keys', async () => {
    const shadow = { limits: { default: LIMITS.default, lanes: { bulk: 0.8 } } };
    const { code, all } = await check({ shadow });
    expect([code, all]).toEqual([
      2,
      expect.stringContaining('shadow.limits.lanes: must have "batch", which routes or keys of the file have'),
    ]);
  });

  it('a lane that nothing has, and a share that leaves nothing of a max, are warnings', async () => {
    const limits = {
      default: { allMethods: ['1/1s', '60/1m'] },
      accounts: { 'application:app': { routes: { 'POST /send': ['2/1m', '0/1h'] } } },
      lanes: { ...LIMITS.lanes, rare: 0.4 },
    };
    const { code, all } = await check({ limits });
    expect(code).toBe(0);
    expect(all).toContain('limits.lanes.rare: no route and no key has this lane');
    expect(all).toContain(
      'limits.default: 0.9 of 1 is 0, rounded down: this layer rejects every request of the lane bulk',
    );
    expect(all).toContain(
      'limits.accounts["application:app"]: 0.4 of 2 is 0, rounded down: this layer rejects every request of the lane rare',
    );
  });
});
