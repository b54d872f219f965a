import { randomUUID } from 'node:crypto';
import { OAuth2Server } from 'oauth2-mock-server';
import { afterAll } from 'vitest';
import { OAuthClient } from '../../src/providers/oauth/client.ts';
import type { OAuthCredentials } from '../../src/providers/oauth/credentials.ts';
import { Graph } from '../../src/providers/outlook/graph.ts';
import { OutlookMailProvider } from '../../src/providers/outlook/mail.ts';
import { scopesOf } from '../../src/providers/outlook/permissions.ts';
import type { MailAccount } from '../../src/providers/provider.ts';
import type { Net } from '../../src/security/net.ts';
import { type GraphDouble, startGraph } from './graph/double.ts';
import type { Mailbox } from './graph/mailbox.ts';
import { mailAccount } from './mail-account.ts';
import { secret } from './secret.ts';

/** A person who signs in at Microsoft, and the permissions that the person gives. */
export interface MicrosoftUser {
  readonly oid: string;
  readonly email: string;
  readonly mailbox: Mailbox;
  /** As Microsoft answers, which leaves `offline_access` out. */
  scope: string;
}

/** Microsoft's sign-in and Microsoft Graph. */
export interface Microsoft {
  readonly graph: GraphDouble;
  readonly issuer: string;
  /** The variables of a service whose Microsoft this is. */
  readonly environment: Readonly<Record<string, string>>;
  /** A new user with a mailbox. */
  user(address?: string): MicrosoftUser;
  /** This user signs in next. */
  signsIn(user: MicrosoftUser): void;
  /** The stored credentials of an account of a user. */
  credentialsOf(user: MicrosoftUser): OAuthCredentials;
  /** The refresh tokens of a user do not work any more. */
  revoke(user: MicrosoftUser): void;
  /** A provider, and an account of a user. The account is renewed as the service does it. */
  account(user: MicrosoftUser): MailAccount;
  provider(looksMs?: readonly number[]): OutlookMailProvider;
  /** How often access tokens were renewed. */
  renewals(): number;
}

const ALL = scopesOf('drafts').filter((scope) => scope !== 'offline_access');

/** Goes to Microsoft's page, where the user signs in at once. @returns the address that Microsoft sends the user to */
export async function signIn(microsoft: Microsoft, user: MicrosoftUser, url: string): Promise<URL> {
  microsoft.signsIn(user);
  const { headers } = await fetch(url, { redirect: 'manual' });
  return new URL(headers.get('location') ?? '');
}

/** The way out of tests: to addresses of this machine only. */
export const directNet: Net = {
  connect: () => Promise.reject(new Error('Graph needs no extra connection.')),
  fetch: (url, init) => fetch(url, { ...init, redirect: 'manual' }),
};

/** Starts both servers. They end after the test file. */
export async function startMicrosoft(): Promise<Microsoft> {
  const graph = await startGraph();
  const server = new OAuth2Server();
  await server.issuer.keys.generate('RS256');
  await server.start(0, '127.0.0.1');
  afterAll(() => server.stop());
  const { url: issuer } = server.issuer;
  if (issuer === undefined) throw new Error('The address of the authorization server is unknown.');

  const refreshTokens = new Map<string, MicrosoftUser>();
  const codes = new Map<string, MicrosoftUser>();
  let next: MicrosoftUser | undefined;
  let [users, renewals] = [0, 0];
  const userOf = (body: Readonly<Record<string, unknown>>): MicrosoftUser | undefined =>
    codes.get(String(body.code)) ?? refreshTokens.get(String(body.refresh_token));
  server.service.on('beforeAuthorizeRedirect', ({ url }) => {
    const code = url.searchParams.get('code');
    if (code !== null && next !== undefined) codes.set(code, next);
  });
  server.service.on('beforeTokenSigning', ({ payload }, { body }) => {
    const user = userOf(body as Record<string, unknown>);
    if (user !== undefined) Object.assign(payload, { sub: `sub-${user.oid}`, oid: user.oid, email: user.email });
  });
  server.service.on('beforeResponse', (response, { body }) => {
    const user = userOf(body as Record<string, unknown>);
    if (user === undefined) {
      response.statusCode = 400;
      response.body = { error: 'invalid_grant', error_description: 'AADSTS70000' };
      return;
    }
    // Microsoft takes each refresh token once, and so may lose an account that renews twice at the same time.
    if (refreshTokens.delete(String((body as Record<string, unknown>).refresh_token))) renewals++;
    const { accessToken, refreshToken } = credentialsOf(user);
    Object.assign(response.body as object, {
      access_token: accessToken,
      refresh_token: refreshToken,
      scope: user.scope,
    });
  });

  const credentialsOf = (user: MicrosoftUser): OAuthCredentials => {
    const refreshToken = `M.R3_${secret()}`;
    refreshTokens.set(refreshToken, user);
    const accessToken = graph.tokenFor(user.mailbox);
    return { accessToken, refreshToken, expiresAt: Date.now() + 3_600_000, scope: user.scope };
  };
  const options = { title: 'Outlook', issuer, clientId: 'client', clientSecret: secret() };
  return {
    graph,
    issuer,
    environment: {
      MICROSOFT_CLIENT_ID: options.clientId,
      MICROSOFT_CLIENT_SECRET: options.clientSecret,
      MICROSOFT_ISSUER: issuer,
      MICROSOFT_API_URL: graph.url,
    },
    user: (address = `user${++users}@outlook.test`) => ({
      oid: randomUUID(),
      email: address,
      mailbox: graph.mailbox(address),
      scope: ALL.join(' '),
    }),
    signsIn: (user) => {
      next = user;
    },
    credentialsOf,
    revoke: (user) => {
      for (const [token, owner] of refreshTokens) if (owner === user) refreshTokens.delete(token);
    },
    account: (user) => mailAccount(user.email, credentialsOf(user), { net: directNet }),
    provider: (looksMs) =>
      new OutlookMailProvider(
        new Graph(new OAuthClient({ ...options, scopes: scopesOf('drafts') }), graph.url),
        looksMs,
      ),
    renewals: () => renewals,
  };
}
