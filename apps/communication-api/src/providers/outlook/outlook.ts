import { readAddress } from '../../domain/addresses.ts';
import type { Clock } from '../../domain/clock.ts';
import type { LinkContext } from '../link-flow.ts';
import { type Authorization, OAuthClient } from '../oauth/client.ts';
import type { OAuthCredentials } from '../oauth/credentials.ts';
import { type OAuthIdentity, oauthLinkFlow } from '../oauth/link-flow.ts';
import { type Provider, ProviderError } from '../provider.ts';
import { outlookError } from './errors.ts';
import { Graph } from './graph.ts';
import { OutlookMailProvider } from './mail.ts';
import { isGranted, may, type OutlookScopes, scopesOf } from './permissions.ts';

/** The variables of the environment that are about Outlook. */
export interface OutlookConfig {
  readonly MICROSOFT_CLIENT_ID?: string | undefined;
  readonly MICROSOFT_CLIENT_SECRET?: string | undefined;
  readonly MICROSOFT_TENANT: string;
  readonly MICROSOFT_ISSUER?: string | undefined;
  readonly MICROSOFT_API_URL: string;
  readonly OUTLOOK_SCOPES: OutlookScopes;
}

/** Mailboxes of Outlook.com and of Microsoft 365, by Microsoft Graph. None without the id of a client. */
export function createOutlook(config: OutlookConfig, clock?: Clock): readonly Provider[] {
  const { MICROSOFT_CLIENT_ID: clientId, MICROSOFT_CLIENT_SECRET: clientSecret } = config;
  if (clientId === undefined || clientSecret === undefined) return [];
  const client = new OAuthClient({
    title: 'Outlook',
    issuer: config.MICROSOFT_ISSUER ?? `https://login.microsoftonline.com/${config.MICROSOFT_TENANT}/v2.0`,
    ...{ clientId, clientSecret, clock },
    scopes: scopesOf(config.OUTLOOK_SCOPES),
  });
  const graph = new Graph(client, config.MICROSOFT_API_URL);
  const link = oauthLinkFlow({
    client,
    intro: INTRO[config.OUTLOOK_SCOPES],
    // A user who is signed in already may want to link another mailbox.
    parameters: { prompt: 'select_account' },
    // Only permissions of Graph are named in the answer.
    isMissing: (scope, granted) => scope.startsWith('Mail.') && !isGranted(scope, granted),
    identify: (authorization, context) => identify(graph, authorization, context),
  });
  return [
    { name: 'outlook', title: 'Outlook', supports: new Set(['emails']), link, mail: new OutlookMailProvider(graph) },
  ];
}

const INTRO = {
  drafts: {
    en: 'Microsoft will ask you to sign in, and to allow two things: to write drafts in your mailbox, and to send emails.',
    de: 'Microsoft bittet Sie, sich anzumelden und zweierlei zu erlauben: Entwürfe in Ihrem Postfach anzulegen und E-Mails zu senden.',
  },
  send: {
    en: 'Microsoft will ask you to sign in, and to allow one thing: to send emails.',
    de: 'Microsoft bittet Sie, sich anzumelden und eines zu erlauben: E-Mails zu senden.',
  },
} as const;

/** The owner of the mailbox. Undefined if the user owns none. */
async function identify(
  graph: Graph,
  { claims, credentials }: Authorization & { readonly credentials: OAuthCredentials },
  { net, signal }: LinkContext,
): Promise<OAuthIdentity | undefined> {
  const { oid, email, preferred_username: username } = claims;
  const name = [email, username].find((each) => typeof each === 'string' && readAddress(each) !== undefined);
  if (typeof oid !== 'string') throw new Error('Microsoft does not say which user it is.');
  if (typeof name !== 'string') return undefined;
  // The permission to send does not allow to ask for a folder.
  if (!may(credentials, 'Mail.ReadWrite')) return { providerUserId: oid, name };
  // The tokens are new, so there is nothing to renew.
  const account = { id: '', address: name, credentials, net, renew: async () => credentials };
  try {
    await graph.ask(account, { method: 'GET', path: '/me/mailFolders/drafts?$select=id' }, signal);
  } catch (error) {
    const known = outlookError(error);
    // Users without a licence for Exchange can sign in, too.
    if (known instanceof ProviderError && known.type === 'errors/account_configuration_error') return undefined;
    throw known;
  }
  return { providerUserId: oid, name };
}
