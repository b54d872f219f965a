import { ResponseBodyError } from 'openid-client';
import { networkError } from '../network-error.ts';
import { type MailAccount, ProviderError } from '../provider.ts';
import type { OAuthClient } from './client.ts';
import type { OAuthCredentials } from './credentials.ts';

/** The provider does not accept an access token. A new one may help. */
export class AccessTokenRefused extends Error {
  override readonly name = 'AccessTokenRefused';
}

/** The error codes of an authorization server if only the user can help. */
const ENDED: readonly string[] = ['invalid_grant', 'interaction_required', 'login_required', 'consent_required'];

/** The newest credentials of an account that is in use, so that its next call does not ask the database for them. */
const newest = new WeakMap<MailAccount, OAuthCredentials>();

/**
 * Calls a provider with an access token. An expired token is renewed first. A token that the provider does not accept
 * is renewed, and the call is made once more.
 * @param call throws AccessTokenRefused if the provider does not accept the token
 * @throws ProviderError 401 `errors/disconnected_account` if the provider gives no new token
 */
export async function withAccessToken<Result>(
  account: MailAccount,
  client: OAuthClient,
  call: (accessToken: string) => Promise<Result>,
): Promise<Result> {
  const stored = newest.get(account) ?? (account.credentials as OAuthCredentials);
  const current = client.isExpired(stored) ? await renew(account, client, stored) : stored;
  try {
    return await call(current.accessToken);
  } catch (error) {
    if (!(error instanceof AccessTokenRefused)) throw error;
  }
  const renewed = await renew(account, client, current);
  return call(renewed.accessToken).catch((error: unknown) => {
    throw error instanceof AccessTokenRefused ? disconnected(client, error) : error;
  });
}

async function renew(account: MailAccount, client: OAuthClient, stale: OAuthCredentials): Promise<OAuthCredentials> {
  const renewed = (await account.renew(stale, (stored) =>
    client.refresh(stored as OAuthCredentials, account.net).catch((error: unknown) => {
      throw refreshError(client, error);
    }),
  )) as OAuthCredentials;
  newest.set(account, renewed);
  return renewed;
}

const disconnected = ({ title }: OAuthClient, cause: unknown): ProviderError =>
  new ProviderError(
    'no',
    401,
    'errors/disconnected_account',
    `${title} does not accept the authorization of this account any more. Reconnect it with a new link.`,
    { cause },
  );

/** Nothing was sent: the request for a new token comes before the email. */
function refreshError(client: OAuthClient, error: unknown): ProviderError {
  const { title } = client;
  if (error instanceof ResponseBodyError && ENDED.includes(error.error)) return disconnected(client, error);
  const status = statusOf(error);
  const extras = { cause: error };
  if (status === undefined) return networkError(title, error);
  if (status === 429)
    return new ProviderError('no', 429, 'provider/too_many_requests', `${title} gives no new token now.`, extras);
  if (status >= 500)
    return new ProviderError('no', 503, 'errors/service_unavailable', `${title} gives no new token now.`, extras);
  return new ProviderError(
    'no',
    500,
    'errors/provider_error',
    `${title} refuses this service as a client. The operator must check its client id and secret.`,
    extras,
  );
}

/** The status of the answer that an error of openid-client is about. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof ResponseBodyError) return error.status;
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Response ? cause.status : undefined;
}
