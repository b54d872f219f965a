import { OAuth2Server } from 'oauth2-mock-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { createGoogle } from '../../../src/providers/google/google.ts';
import type { AwayStep, LinkContext, LinkFlow } from '../../../src/providers/link-flow.ts';
import { OAuthClient } from '../../../src/providers/oauth/client.ts';
import { oauthLinkFlow } from '../../../src/providers/oauth/link-flow.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { Egress } from '../../../src/security/egress.ts';
import { startGoogle } from '../../support/google.ts';
import { secret } from '../../support/secret.ts';

const CALLBACK = 'http://127.0.0.1:8080/auth/callback';
const net = new Egress({ policy: 'off' }).through(undefined);
let states = 0;
const contextOf = (given: Partial<LinkContext> = {}): LinkContext => ({
  loginHint: undefined,
  reconnect: undefined,
  offered: ['google'],
  proxy: undefined,
  net,
  callbackUrl: CALLBACK,
  callbackState: `state-${++states}`,
  settings: {},
  now: Date.now(),
  signal: AbortSignal.timeout(20_000),
  ...given,
});
const away = (flow: LinkFlow, state: unknown, context: LinkContext): AwayStep =>
  flow.stepOf(state, context) as AwayStep;
const query = (values: Record<string, string>) => ({ query: new URLSearchParams(values).toString() });

describe('at Google', async () => {
  const google = await startGoogle();
  const email = 'ann@gmail.example';
  google.addUser(email);
  google.allowRedirect(CALLBACK);
  const create = (permissions: 'drafts' | 'send') =>
    createGoogle(readConfig({ ...google.environment, GOOGLE_SCOPES: permissions }), Date.now)[0] as Provider;
  const flow = create('drafts').link as LinkFlow;
  /** The user's way through Google's page. */
  const callback = async (context: LinkContext, state: unknown, deny?: readonly string[]) => ({
    query: (await google.consent(away(flow, state, context).url, email, deny)).search,
  });

  test('the page leads to Google with PKCE by S256, a nonce and the state, and asks for lasting access', async () => {
    const context = contextOf({ loginHint: email });
    const step = away(flow, await flow.begin(context), context);
    const { origin, pathname, searchParams } = new URL(step.url);
    expect([origin, pathname]).toEqual([google.url, '/o/oauth2/v2/auth']);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: google.clientId,
      redirect_uri: context.callbackUrl,
      response_type: 'code',
      scope: expect.stringMatching(/^openid email \S+gmail\.compose \S+gmail\.metadata$/),
      state: context.callbackState,
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      access_type: 'offline',
      prompt: 'consent',
      login_hint: email,
    });
    expect(step).toMatchObject({ kind: 'away', button: { en: 'Continue to Google', de: 'Weiter zu Google' } });
  });

  test('the mailbox that is reconnected is proposed, whatever the link proposes', async () => {
    const context = contextOf({
      loginHint: 'x@y.example',
      reconnect: { providerUserId: '1', name: email, credentials: {} },
    });
    const { url: page } = away(flow, await flow.begin(context), context);
    expect(new URL(page).searchParams.get('login_hint')).toBe(email);
  });

  test('the user is identified by an id that never changes, and the mailbox by its address', async () => {
    const context = contextOf();
    const state = await flow.begin(context);
    // The wizard stores the state as JSON between the pages.
    const stored = JSON.parse(JSON.stringify(state)) as unknown;
    const answer = await flow.submit(stored, await callback(context, stored), context);
    expect(answer).toMatchObject({
      kind: 'identified',
      account: {
        providerUserId: expect.stringMatching(/^goog/),
        name: email,
        credentials: {
          accessToken: expect.stringMatching(/^google_/),
          refreshToken: expect.stringMatching(/^google_refresh_/),
          scope: expect.stringContaining('gmail.compose'),
        },
      },
    });
    const { expiresAt } = (answer as { account: { credentials: { expiresAt: number } } }).account.credentials;
    expect(Math.abs(expiresAt - Date.now() - 3_600_000)).toBeLessThan(60_000);
  });

  test('an account that may only send is identified as well', async () => {
    const sender = create('send').link as LinkFlow;
    const context = contextOf();
    const state = await sender.begin(context);
    const { url: page } = away(sender, state, context);
    expect(new URL(page).searchParams.get('scope')).toMatch(/^openid email \S+gmail\.send$/);
    const { search } = await google.consent(page, email);
    expect(await sender.submit(state, { query: search }, context)).toMatchObject({
      kind: 'identified',
      account: { name: email },
    });
  });

  test('a user who leaves out a permission can try again, with another nonce and another verifier', async () => {
    const context = contextOf();
    const state = await flow.begin(context);
    const denied = await callback(context, state, ['https://www.googleapis.com/auth/gmail.metadata']);
    expect(await flow.submit(state, denied, context)).toMatchObject({
      kind: 'invalid',
      faults: [{ message: { en: expect.stringContaining('did not give all permissions') } }],
    });
    const again = contextOf();
    const [first, second] = [context, again].map((each) => new URL(away(flow, state, each).url).searchParams);
    for (const name of ['state', 'nonce', 'code_challenge']) expect(second?.get(name)).not.toBe(first?.get(name));
    expect(await flow.submit(state, await callback(again, state), again)).toMatchObject({ kind: 'identified' });
  });

  test.each([
    ['access_denied', 'was not allowed'],
    ['admin_policy_enforced', '(admin_policy_enforced)'],
    ['<b>call 555</b>', 'ended the sign-in.'],
  ])('the error %s of Google is a page, without any text from the address', async (error, text) => {
    const context = contextOf();
    const state = await flow.begin(context);
    const values = query({ error, error_description: 'Call 555 now', state: context.callbackState });
    const answer = await flow.submit(state, values, context);
    expect(answer).toMatchObject({ kind: 'invalid', faults: [{ message: { en: expect.stringContaining(text) } }] });
    expect(JSON.stringify(answer)).not.toContain('555');
  });

  test('a code that was used, or is for another attempt, links nothing', async () => {
    const context = contextOf();
    const state = await flow.begin(context);
    const values = await callback(context, state);
    await flow.submit(state, values, context);
    const late = { kind: 'invalid', faults: [{ message: { en: expect.stringContaining('too old') } }] };
    expect(await flow.submit(state, values, context)).toMatchObject(late);
    const stolen = new URLSearchParams((await callback(contextOf(), await flow.begin(context))).query);
    stolen.set('state', context.callbackState);
    // The code belongs to a request with another PKCE challenge.
    expect(await flow.submit(state, { query: stolen.toString() }, context)).toMatchObject(late);
  });

  test('a callback with another state, another issuer or no code is refused before the code is used', async () => {
    const context = contextOf();
    const state = await flow.begin(context);
    const { query: search } = await callback(context, state);
    const before = google.requests.filter(({ path }) => path === '/oauth2/token').length;
    const changed = (name: string, value: string) => {
      const parameters = new URLSearchParams(search);
      parameters.set(name, value);
      return { query: parameters.toString() };
    };
    await expect(flow.submit(state, changed('state', 'other'), context)).rejects.toThrow();
    await expect(flow.submit(state, changed('iss', 'https://evil.example'), context)).rejects.toThrow();
    await expect(flow.submit(state, query({ state: context.callbackState }), context)).rejects.toThrow();
    await expect(flow.submit(state, {}, context)).rejects.toThrow();
    expect(google.requests.filter(({ path }) => path === '/oauth2/token').length).toBe(before);
    expect(await flow.submit(state, { query: search }, context)).toMatchObject({ kind: 'identified' });
  });

  test('a Google account without Gmail cannot be linked', async () => {
    const context = contextOf();
    const state = await flow.begin(context);
    const values = await callback(context, state);
    google.fault = ({ path }) =>
      path === 'profile'
        ? {
            kind: 'answer',
            when: 'before',
            status: 400,
            body: {
              error: {
                code: 400,
                message: 'Mail service not enabled',
                status: 'FAILED_PRECONDITION',
                errors: [{ reason: 'failedPrecondition' }],
              },
            },
          }
        : undefined;
    const answer = await flow.submit(state, values, context);
    google.fault = undefined;
    expect(answer).toMatchObject({
      kind: 'invalid',
      faults: [{ message: { en: expect.stringContaining('no mailbox') } }],
    });
  });
});

describe('at another server', () => {
  const server = new OAuth2Server();
  beforeAll(async () => {
    await server.issuer.keys.generate('RS256');
    await server.start(0, '127.0.0.1');
    server.service.on('beforeResponse', ({ body }) => Object.assign(body, { scope: 'openid mail' }));
  });
  afterAll(() => server.stop());
  const issuer = (): string => server.issuer.url ?? '';
  const flowAt = (address: string): LinkFlow =>
    oauthLinkFlow({
      client: new OAuthClient({
        title: 'Mail',
        issuer: address,
        clientId: 'client',
        clientSecret: secret(),
        scopes: ['openid', 'mail'],
      }),
      intro: { en: '', de: '' },
      identify: async ({ claims }) => ({ providerUserId: claims.sub, name: 'me@mail.example' }),
    }) as LinkFlow;
  /** The whole way: what the server sends back is submitted. */
  const link = async () => {
    const flow = flowAt(issuer());
    const context = contextOf();
    const state = await flow.begin(context);
    const page = await fetch(away(flow, state, context).url, { redirect: 'manual' });
    return flow.submit(state, { query: new URL(page.headers.get('location') ?? '').search }, context);
  };
  const payload = (change: (claims: Record<string, unknown>) => void): void =>
    void server.service.once('beforeTokenSigning', ({ payload: claims }) => change(claims));
  const answer = (change: (body: Record<string, unknown>) => void): void =>
    void server.service.once('beforeResponse', ({ body }) => change(body as Record<string, unknown>));

  test('it links with the code, the verifier and the nonce', async () => {
    const seen: Record<string, unknown>[] = [];
    server.service.once('beforeResponse', (_, { body }) => void seen.push(body as never));
    expect(await link()).toMatchObject({ kind: 'identified', account: { name: 'me@mail.example' } });
    expect(seen).toMatchObject([
      { grant_type: 'authorization_code', code_verifier: expect.stringMatching(/^[\w-]{43}$/) },
    ]);
  });

  test.each([
    ['nonce', 'another'],
    ['iss', 'https://evil.example'],
    ['aud', 'another-client'],
    ['exp', 1_000_000_000],
  ])('an ID token whose %s is wrong links nothing', async (name, value) => {
    // The first token is the access token, the second one the ID token.
    const wrong = (claims: Record<string, unknown>): void => void Object.assign(claims, { [name]: value });
    payload(wrong);
    server.service.once('beforeTokenSigning', () => payload(wrong));
    await expect(link()).rejects.toThrow();
    server.service.removeAllListeners('beforeTokenSigning');
  });

  test('a server that gives no refresh token did not give all permissions', async () => {
    answer((body) => delete body.refresh_token);
    expect(await link()).toMatchObject({ kind: 'invalid' });
  });

  test('a server that names fewer scopes than were asked for did not give all permissions', async () => {
    answer((body) => Object.assign(body, { scope: 'openid' }));
    expect(await link()).toMatchObject({ kind: 'invalid' });
  });

  test('without TLS, only a loopback address is asked, whatever the server says about itself', async () => {
    const plain = 'http://login.example.test';
    await expect(flowAt(plain).begin(contextOf())).rejects.toThrow();
    const description = { issuer: issuer(), authorization_endpoint: `${plain}/a`, token_endpoint: `${plain}/t` };
    const asked: string[] = [];
    const spying = {
      ...net,
      fetch: async (url: string | URL) => {
        asked.push(new URL(url).hostname);
        return Response.json(description);
      },
    };
    const flow = flowAt(issuer());
    const context = contextOf({ net: spying });
    const state = await flow.begin(context);
    await expect(flow.submit(state, query({ code: 'c', state: context.callbackState }), context)).rejects.toThrow();
    expect(new Set(asked)).toEqual(new Set(['localhost']));
  });

  test('a server whose issuer is another one than that of the settings is refused', async () => {
    const lying = { ...net, fetch: async () => Response.json({ issuer: 'https://evil.example' }) };
    await expect(flowAt(issuer()).begin(contextOf({ net: lying }))).rejects.toThrow();
  });
});
