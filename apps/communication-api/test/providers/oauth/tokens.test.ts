import { expect, test } from 'vitest';
import { OAuthClient } from '../../../src/providers/oauth/client.ts';
import type { OAuthCredentials } from '../../../src/providers/oauth/credentials.ts';
import { AccessTokenRefused, withAccessToken } from '../../../src/providers/oauth/tokens.ts';
import { EgressError, type EgressFailure } from '../../../src/security/net.ts';
import { type GoogleFault, startGoogle } from '../../support/google.ts';
import { logged } from '../../support/logged.ts';
import { mailAccount } from '../../support/mail-account.ts';
import { secret } from '../../support/secret.ts';

const google = await startGoogle();
let users = 0;
const { clientId, clientSecret, url: issuer } = google;
const clientOf = (given: Partial<ConstructorParameters<typeof OAuthClient>[0]> = {}): OAuthClient =>
  new OAuthClient({ title: 'Google', issuer, clientId, clientSecret, scopes: ['openid'], ...given });
const linked = async (given: Parameters<typeof mailAccount>[2] = {}) => {
  const email = `user${++users}@gmail.example`;
  google.addUser(email);
  return mailAccount(email, await google.credentials(email), given);
};
const tokenRequests = (): number => google.requests.filter(({ path }) => path === '/oauth2/token').length;
/** The provider, which accepts every token but those that are listed. */
const api =
  (...refused: readonly string[]) =>
  async (token: string): Promise<string> => {
    if (refused.includes(token)) throw new AccessTokenRefused();
    return token;
  };
const tokenOf = ({ credentials }: { readonly credentials: unknown }): string =>
  (credentials as OAuthCredentials).accessToken;
const disconnected = { sent: 'no', status: 401, type: 'errors/disconnected_account' };

test('a token that is valid is used as it is stored', async () => {
  const account = await linked();
  const before = tokenRequests();
  expect(await withAccessToken(account, clientOf(), api())).toBe(tokenOf(account));
  expect(tokenRequests()).toBe(before);
});

test('a token that has expired, or will within a minute, is renewed first, and the new one is stored', async () => {
  for (const minutes of [58, 61]) {
    const account = await linked();
    const clock = (): number => Date.now() + minutes * 60_000;
    const token = await withAccessToken(account, clientOf({ clock }), api());
    if (minutes === 58) expect(account.renewals()).toBe(0);
    else expect(account.stored()).toMatchObject({ accessToken: token, expiresAt: expect.any(Number) });
    // A server that gives no new refresh token lets the old one stay.
    expect(account.stored()).toMatchObject({ refreshToken: (account.credentials as OAuthCredentials).refreshToken });
  }
});

test('a token that the provider refuses is renewed, and the call is made once more', async () => {
  const account = await linked();
  const client = clientOf();
  const token = await withAccessToken(account, client, api(tokenOf(account)));
  expect(token).not.toBe(tokenOf(account));
  // The next call with the same account begins with the new token.
  const before = tokenRequests();
  expect(await withAccessToken(account, client, api(tokenOf(account)))).toBe(token);
  expect(tokenRequests()).toBe(before);
});

test('a refresh token that the server has replaced is stored', async () => {
  const account = await linked();
  const next = secret();
  google.fault = ({ path }) =>
    path === '/oauth2/token'
      ? {
          kind: 'answer',
          when: 'before',
          status: 200,
          body: { access_token: secret(), token_type: 'Bearer', expires_in: 60, refresh_token: next },
        }
      : undefined;
  await withAccessToken(account, clientOf(), api(tokenOf(account)));
  google.fault = undefined;
  expect(account.stored()).toMatchObject({ refreshToken: next });
});

test('a new token that the provider refuses as well ends the account, after one renewal', async () => {
  const account = await linked();
  const calls: string[] = [];
  const refusing = async (token: string): Promise<never> => {
    calls.push(token);
    throw new AccessTokenRefused();
  };
  await expect(withAccessToken(account, clientOf(), refusing)).rejects.toMatchObject(disconnected);
  expect(new Set(calls).size).toBe(2);
  expect(account.renewals()).toBe(1);
});

test('an authorization that has ended disconnects the account, and nothing is stored', async () => {
  const account = await linked();
  google.forgetTokens(account.address, 'all');
  await expect(withAccessToken(account, clientOf(), api(tokenOf(account)))).rejects.toMatchObject(disconnected);
  expect(account.renewals()).toBe(0);
});

const error = (status: number, code: string): GoogleFault => ({
  kind: 'answer',
  when: 'before',
  status,
  body: { error: code },
});

test.each([
  ['the user must sign in again', error(400, 'interaction_required'), 401, 'errors/disconnected_account'],
  ['a wrong secret of the client', error(401, 'invalid_client'), 500, 'errors/provider_error'],
  ['too many requests', error(429, 'slow_down'), 429, 'provider/too_many_requests'],
  ['a fault of the server', error(503, 'temporarily_unavailable'), 503, 'errors/service_unavailable'],
  [
    'a page of a proxy',
    { kind: 'answer', when: 'before', status: 502, body: '<html>', headers: { 'content-type': 'text/html' } },
    503,
    'errors/service_unavailable',
  ],
  ['a connection that ends', { kind: 'cut', when: 'before' }, 503, 'errors/network_down'],
  ['an answer that ends in the middle', { kind: 'cut', when: 'in the answer' }, 503, 'errors/network_down'],
] as const)(
  'no new token because of %s: the account stays connected unless only the user can help',
  async (_, fault, status, type) => {
    const account = await linked();
    google.fault = ({ path }) => (path === '/oauth2/token' ? fault : undefined);
    const failure = await withAccessToken(account, clientOf(), api(tokenOf(account))).catch(
      (thrown: unknown) => thrown,
    );
    google.fault = undefined;
    expect(failure).toMatchObject({ sent: 'no', status, type });
    expect(account.renewals()).toBe(0);
    // Once the fault is over, the same account works.
    if (status !== 401)
      expect(await withAccessToken(account, clientOf(), api(tokenOf(account)))).toEqual(expect.any(String));
  },
);

const jwtOf = (payload: string): string =>
  ['{"alg":"RS256"}', payload, ''].map((part) => Buffer.from(part).toString('base64url')).join('.');

test.each<[string, (token: string) => string]>([
  ['that is a token', (token) => token],
  ['that ends too early', (token) => `{"access_token":"${token}"`],
  ['with a token that has no quotes', (token) => `{"access_token":${token}}`],
  [
    'with an id token that cannot be read',
    (token) => JSON.stringify({ token_type: 'Bearer', access_token: 'a', id_token: jwtOf(`{"a":${token}}`) }),
  ],
])('an answer %s is not logged', async (_, bodyWith) => {
  const account = await linked();
  const token = secret();
  const answer = { kind: 'answer', when: 'before', status: 200, body: bodyWith(token) } as const;
  google.fault = ({ path }) =>
    path === '/oauth2/token' ? { ...answer, headers: { 'content-type': 'application/json' } } : undefined;
  const failure = await withAccessToken(account, clientOf(), api(tokenOf(account))).catch((thrown: unknown) => thrown);
  google.fault = undefined;
  expect(failure).toMatchObject({ sent: 'no', status: 503 });
  // A parser quotes a few letters.
  expect(logged(failure)).not.toContain(token.slice(0, 8));
});

test.each([
  ['proxy_credentials', 401, 'errors/invalid_proxy_credentials'],
  ['forbidden', 503, 'errors/network_down'],
  ['timeout', 503, 'errors/network_down'],
] as const)('a way out that fails (%s) is reported as such', async (failure, status, type) => {
  const fails = (why: EgressFailure) => async (): Promise<never> => {
    throw new TypeError('fetch failed', { cause: new EgressError(why, 'No connection.') });
  };
  const net = { fetch: fails(failure), connect: fails(failure) };
  const account = await linked({ net });
  await expect(withAccessToken(account, clientOf(), api(tokenOf(account)))).rejects.toMatchObject({
    sent: 'no',
    status,
    type,
  });
});

test('an error of the call itself is thrown as it is', async () => {
  const failure = new Error('full');
  const call = async (): Promise<never> => {
    throw failure;
  };
  await expect(withAccessToken(await linked(), clientOf(), call)).rejects.toBe(failure);
});
