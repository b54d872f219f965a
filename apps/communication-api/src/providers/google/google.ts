import type { Clock } from '../../domain/clock.ts';
import { OAuthClient } from '../oauth/client.ts';
import type { OAuthCredentials } from '../oauth/credentials.ts';
import { oauthLinkFlow } from '../oauth/link-flow.ts';
import { type Provider, ProviderError } from '../provider.ts';
import { type Access, GmailApi, TITLE } from './gmail-api.ts';
import { GoogleMailProvider } from './mail.ts';
import { PERMISSIONS } from './scopes.ts';

/** The variables of the environment that are about Google. */
export interface GoogleConfig {
  readonly GOOGLE_CLIENT_ID?: string | undefined;
  readonly GOOGLE_CLIENT_SECRET?: string | undefined;
  readonly GOOGLE_SCOPES: keyof typeof PERMISSIONS;
  readonly GOOGLE_ISSUER: string;
  readonly GOOGLE_API_URL: string;
}

/** Gmail and Google Workspace, by OAuth and the Gmail API. None without the id of a client. */
export function createGoogle(config: GoogleConfig, clock: Clock): readonly Provider[] {
  const { GOOGLE_CLIENT_ID: clientId, GOOGLE_CLIENT_SECRET: clientSecret, GOOGLE_SCOPES: permissions } = config;
  if (clientId === undefined || clientSecret === undefined) return [];
  const scopes = ['openid', 'email', ...PERMISSIONS[permissions]];
  const client = new OAuthClient({ title: TITLE, issuer: config.GOOGLE_ISSUER, clientId, clientSecret, scopes, clock });
  const api = new GmailApi(config.GOOGLE_API_URL, client, clock);
  const google: Provider = {
    name: 'google',
    title: TITLE,
    supports: new Set(['emails']),
    mail: new GoogleMailProvider(api, clock),
    link: oauthLinkFlow({
      client,
      intro: {
        en: 'Google asks you to choose an account, and to allow this application to send emails in your name. Allow every permission that it lists.',
        de: 'Google lässt Sie ein Konto wählen und fragt, ob diese Anwendung in Ihrem Namen E-Mails senden darf. Bitte erlauben Sie alles, was dort steht.',
      },
      // Google gives a refresh token only if it is asked for access while the user is away, and asks the user.
      parameters: { access_type: 'offline', prompt: 'consent' },
      identify: async ({ claims, credentials }, { net, signal }) => {
        // The permission to send does not include that to ask for the address of the mailbox.
        const mailbox = permissions === 'send' ? claims.email : await mailboxOf(api, { net, ...credentials }, signal);
        return typeof mailbox === 'string' ? { providerUserId: claims.sub, name: mailbox } : undefined;
      },
    }),
    revoke: ({ credentials, net }, signal) => client.revoke(credentials as OAuthCredentials, net, signal),
  };
  return [google];
}

/** The address of the mailbox. Undefined: this Google account owns no mailbox. */
async function mailboxOf(api: GmailApi, access: Access, signal: AbortSignal): Promise<unknown> {
  try {
    const profile = await api.request<Record<string, unknown>>(access, { method: 'GET', path: 'profile', signal });
    return profile?.emailAddress;
  } catch (error) {
    if (error instanceof ProviderError && error.type === 'errors/account_configuration_error') return undefined;
    throw error;
  }
}
