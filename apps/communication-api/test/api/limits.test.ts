import { recommendedLimits } from 'headgate/recommended';
import { describe, expect, test } from 'vitest';
import { limitProvider } from '../../src/limits/account-limits.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { startService } from '../support/service.ts';

const { url, application, rooms } = await startService();
const { id: applicationId, token, key } = await application();
const call = clientOf(url, token);
const route = 'POST /api/v1/emails';
const newAccount = async (): Promise<string> => (await linkAccount(rooms, applicationId)).id;
const limitOf = (windows: string[], source: string, given: object = {}) => ({
  object: 'Limit',
  provider: 'mock',
  account_id: null,
  route: null,
  windows,
  source,
  ...given,
});

test('the limits of a provider start with the recommended ones', async () => {
  const { id, token } = await application();
  const client = clientOf(url, token);
  const answer = await client('GET', '/v2/limits?provider=mock');
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({
    object: 'LimitList',
    data: [limitOf(['60/1m', '5000/1d'], 'recommended'), limitOf(['10/1m', '200/1d'], 'recommended', { route })],
  });
  expect((await client('GET', '/v2/limits?provider=linkedin')).body.data).toMatchObject([
    { route: null, windows: ['20/1m', '800/1d'] },
    { route, windows: [] },
  ]);
  const all = (await client('GET', '/v2/limits')).body.data;
  expect(all).toHaveLength(2 * Object.keys(recommendedLimits).length);
  const account = await linkAccount(rooms, id);
  expect((await client('GET', `/v2/limits?account_id=${account.id}`)).body.data).toEqual([
    limitOf(['60/1m', '5000/1d'], 'recommended', { account_id: account.id }),
    limitOf(['10/1m', '200/1d'], 'recommended', { account_id: account.id, route }),
  ]);
});

test('a limit is adjusted for a provider and for an account, and reset', async () => {
  const { id, token } = await application();
  const client = clientOf(url, token);
  const account_id = (await linkAccount(rooms, id)).id;
  const ofAccount = async () => (await client('GET', `/v2/limits?account_id=${account_id}`)).body.data;
  const put = await client('PUT', '/v2/limits', { provider: 'mock', route, windows: ['500/1d', '7/1m'] });
  expect(put).toMatchObject({ status: 200 });
  expect(put.body).toEqual(limitOf(['7/1m', '500/1d'], 'application', { route }));
  expect(await ofAccount()).toMatchObject([
    { route: null, source: 'recommended' },
    { route, windows: ['7/1m', '500/1d'], source: 'application' },
  ]);
  await client('PUT', '/v2/limits', { account_id, windows: ['2/30s'] });
  await client('PUT', '/v2/limits', { account_id, windows: ['3/30s'] });
  expect(await ofAccount()).toEqual([
    limitOf(['3/30s'], 'account', { account_id }),
    limitOf(['7/1m', '500/1d'], 'application', { account_id, route }),
  ]);
  const applied = rooms.limiter.windowSet({ account: account_id, provider: limitProvider(id, 'mock'), route });
  expect(applied.windows.map(({ max }) => max)).toEqual([7, 500, 3]);
  expect((await client('DELETE', `/v2/limits?account_id=${account_id}`)).body).toEqual(
    limitOf(['60/1m', '5000/1d'], 'recommended', { account_id }),
  );
  const byProvider = `/v2/limits?provider=mock&route=${encodeURIComponent(route)}`;
  for (let i = 0; i < 2; i++)
    expect((await client('DELETE', byProvider)).body).toEqual(limitOf(['10/1m', '200/1d'], 'recommended', { route }));
  const own = rooms.limits.shared.list().filter(({ target }) => Object.values(target).join().includes(id));
  expect(own).toEqual([]);
});

test('a change names the key that made it, and has a version', async () => {
  const { id, token } = await application();
  await clientOf(url, token)('PUT', '/v2/limits', { provider: 'imap', windows: ['1/1m'] });
  await clientOf(url, token)('PUT', '/v2/limits', { provider: 'imap', windows: ['2/1m'] });
  const target = { provider: limitProvider(id, 'imap') };
  const [adjustment] = rooms.limits.shared.list().filter((each) => each.target.provider === target.provider);
  expect(adjustment).toMatchObject({ target, windows: [{ max: 2 }], by: expect.stringMatching(/^key_/) });
  const [last, first] = await rooms.limits.shared.history({ target });
  expect([last?.limits, last?.version]).toMatchObject([
    [{ from: [{ max: 1 }], to: [{ max: 2 }] }],
    (first?.version ?? 0) + 1,
  ]);
});

describe('what is refused', () => {
  test.each([
    ['three windows', { provider: 'mock', windows: ['1/1s', '2/1m', '3/1h'] }, 'up to two windows'],
    ['no window', { provider: 'mock', windows: [] }, 'at least one window'],
    ['windows missing', { provider: 'mock' }, 'windows: required'],
    ['a window without a unit', { provider: 'mock', windows: ['1/60'] }, 'windows[0]: a duration is a whole number'],
    ['a window that is a word', { provider: 'mock', windows: ['many'] }, 'windows[0]: a window is max/duration'],
    ['equal durations', { provider: 'mock', windows: ['1/60s', '2/1m'] }, 'distinct durations'],
    ['a negative maximum', { provider: 'mock', windows: ['-1/1m'] }, 'windows[0]'],
    ['a number as a window', { provider: 'mock', windows: [1] }, 'windows[0]'],
    ['an unknown provider', { provider: 'fax', windows: ['1/1m'] }, 'provider'],
    ['a provider in upper case', { provider: 'MOCK', windows: ['1/1m'] }, 'mock'],
    ['an unknown route', { provider: 'mock', route: 'GET /v2/accounts', windows: ['1/1m'] }, 'route'],
    ['no selector', { windows: ['1/1m'] }, 'provider or account_id'],
    ['two selectors', { provider: 'mock', account_id: 'acc_1', windows: ['1/1m'] }, 'one of'],
    ['an unknown field', { provider: 'mock', scope: 'account', windows: ['1/1m'] }, 'unknown field "scope"'],
  ])('%s is a 422', async (_, body, detail) => {
    const answer = await call('PUT', '/v2/limits', body);
    expect(answer).toMatchObject({ status: 422, body: { type: 'errors/unprocessable_entity' } });
    expect(answer.body.detail).toContain(detail);
  });

  test('an account that is unknown or of another application is a 404', async () => {
    const other = await application();
    const { id: foreign } = await linkAccount(rooms, other.id);
    for (const account_id of [foreign, 'acc_1'])
      for (const answer of [
        await call('GET', `/v2/limits?account_id=${account_id}`),
        await call('PUT', '/v2/limits', { account_id, windows: ['1/1m'] }),
        await call('DELETE', `/v2/limits?account_id=${account_id}`),
        await call('POST', '/v2/limits/counters/reset', { account_id }),
      ])
        expect(answer).toMatchObject({ status: 404, body: { type: 'errors/invalid_resource_identifier' } });
  });

  test('only a service key reaches limits', async () => {
    const scope = (await call('POST', '/v2/scopes', { name: 'a' })).body.id;
    for (const other of [await key('account'), await key('scoped', scope)])
      for (const [method, path] of [
        ['GET', '/v2/limits'],
        ['PUT', '/v2/limits'],
        ['DELETE', '/v2/limits'],
        ['POST', '/v2/limits/counters/reset'],
      ] as const)
        expect(await clientOf(url, other)(method, path)).toMatchObject({
          status: 403,
          body: { type: 'errors/insufficient_permissions' },
        });
  });
});

test('adjustments of one application leave another one alone', async () => {
  const [one, other] = [await application(), await application()];
  await clientOf(url, one.token)('PUT', '/v2/limits', { provider: 'mock', windows: ['1/1m'] });
  expect((await clientOf(url, other.token)('GET', '/v2/limits?provider=mock')).body.data[0]).toEqual(
    limitOf(['60/1m', '5000/1d'], 'recommended'),
  );
});

test('an adjustment applies to the next request, and resetting the counters gives the allowance back', async () => {
  const account_id = await newAccount();
  const provider = limitProvider(applicationId, 'mock');
  const consume = async (each = route) =>
    (await rooms.limiter.consume({ account: account_id, provider, route: each })).accepted;
  expect(await consume()).toBe(true);
  await call('PUT', '/v2/limits', { account_id, route, windows: ['1/1m'] });
  expect(await consume()).toBe(false);
  await call('PUT', '/v2/limits', { account_id, route, windows: ['2/1m'] });
  expect(await consume()).toBe(true);
  expect(await consume()).toBe(false);
  const reset = await call('POST', '/v2/limits/counters/reset', { account_id, route });
  expect(reset.body).toEqual({ object: 'LimitCountersReset', account_id, route });
  expect(await consume()).toBe(true);
  await consume();
  expect(await consume()).toBe(false);
  expect((await call('POST', '/v2/limits/counters/reset', { account_id })).body.route).toBeNull();
  expect(await consume()).toBe(true);
});

test('an adjusted limit rejects the next email of the account, and no email of another account', async () => {
  const [limited, free] = [await newAccount(), await newAccount()];
  const send = (account_id: string) =>
    call('POST', '/api/v1/emails', { account_id, to: [{ identifier: 'ann@mock.test' }], body: 'Hello' });
  expect((await send(limited)).headers.get('x-ratelimit-limit')).toBe('5000');
  await call('PUT', '/v2/limits', { account_id: limited, route, windows: ['1/1m'] });
  const rejected = await send(limited);
  expect(rejected).toMatchObject({ status: 429, body: { type: 'api/too_many_requests' } });
  expect(rejected.headers.get('x-ratelimit-limit')).toBe('1');
  expect((await send(free)).status).toBe(201);
  await call('DELETE', `/v2/limits?account_id=${limited}&route=${encodeURIComponent(route)}`);
  expect((await send(limited)).status).toBe(201);
});
