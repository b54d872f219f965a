import { createHash, createHmac, randomBytes } from 'node:crypto';
import { AuthorizationResponseError, ResponseBodyError } from 'openid-client';
import type { Words } from '../../domain/language.ts';
import type { AwayStep, LinkAnswer, LinkContext, LinkFlow, StepValues } from '../link-flow.ts';
import type { Authorization, AuthorizationChecks, OAuthClient } from './client.ts';
import type { OAuthCredentials } from './credentials.ts';

/** The owner of a mailbox. */
export interface OAuthIdentity {
  /** The provider's own id, which never changes. */
  readonly providerUserId: string;
  /** Address of the mailbox. */
  readonly name: string;
}

export interface OAuthLinkOptions {
  readonly client: OAuthClient;
  /** The text of the first page about the permissions. */
  readonly intro: Words;
  /** More parameters of the provider's page. */
  readonly parameters?: Readonly<Record<string, string>> | undefined;
  /** Whether the provider did not grant a scope. By default, a granted scope is spelled like the requested scope. */
  isMissing?(scope: string, granted: readonly string[]): boolean;
  /** Finds out who gave the authorization. Undefined: there is no mailbox. */
  identify(
    authorization: Authorization & { readonly credentials: OAuthCredentials },
    context: LinkContext,
  ): Promise<OAuthIdentity | undefined>;
}

/** Scopes of OpenID Connect. Providers may grant them under other names; the tokens themselves show that they did. */
const OPENID_SCOPES: readonly string[] = ['openid', 'email', 'profile', 'offline_access'];

interface State {
  readonly authorizationEndpoint: string;
  /** The nonce and the PKCE verifier of each attempt are made from this and from the attempt's own state. */
  readonly seed: string;
}

/** How a user links an account by OAuth: a page that explains, the provider's own page, and back. */
export function oauthLinkFlow(options: OAuthLinkOptions): LinkFlow<State> {
  const { client } = options;
  return {
    begin: async ({ net, signal }) => ({
      authorizationEndpoint: await client.authorizationEndpoint(net, signal),
      seed: randomBytes(32).toString('base64url'),
    }),
    stepOf: (state, context) => awayStep(options, state, context),
    submit: async (state, values, context) => submit(options, state, values, context),
  };
}

function awayStep({ client, intro, parameters = {} }: OAuthLinkOptions, state: State, context: LinkContext): AwayStep {
  const { title } = client;
  const { state: callbackState, nonce, verifier } = checksOf(state, context);
  const hint = context.reconnect?.name ?? context.loginHint;
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  return {
    kind: 'away',
    name: 'provider',
    title: { en: `Continue with ${title}`, de: `Weiter mit ${title}` },
    intro,
    url: client.authorizationUrl(
      state.authorizationEndpoint,
      context.callbackUrl,
      { state: callbackState, nonce, challenge },
      { ...parameters, ...(hint === undefined ? {} : { login_hint: hint }) },
    ),
    button: { en: `Continue to ${title}`, de: `Weiter zu ${title}` },
  };
}

/** Each attempt uses a different nonce and verifier, even if the page is shown again. */
function checksOf({ seed }: State, { callbackState }: LinkContext): AuthorizationChecks {
  const derive = (purpose: string): string =>
    createHmac('sha256', seed).update(`${purpose}\n${callbackState}`).digest('base64url');
  return { state: callbackState, nonce: derive('nonce'), verifier: derive('verifier') };
}

async function submit(
  options: OAuthLinkOptions,
  state: State,
  { query }: StepValues,
  context: LinkContext,
): Promise<LinkAnswer<State>> {
  const { client, identify, isMissing = (scope, granted) => !granted.includes(scope) } = options;
  const callback = new URL(context.callbackUrl);
  callback.search = String(query ?? '');
  let authorization: Authorization;
  try {
    authorization = await client.authorize(callback, checksOf(state, context), context.net, context.signal);
  } catch (error) {
    if (error instanceof AuthorizationResponseError) return invalid(refusal(client, error.error));
    if (error instanceof ResponseBodyError && error.error === 'invalid_grant') return invalid(late(client));
    throw error;
  }
  const { credentials, scopes } = authorization;
  const needed = client.scopes.filter((scope) => !OPENID_SCOPES.includes(scope));
  if (credentials === undefined || needed.some((scope) => isMissing(scope, scopes))) return invalid(missing(client));
  const identity = await identify({ ...authorization, credentials }, context);
  if (identity === undefined) return invalid(noMailbox(client));
  return { kind: 'identified', account: { ...identity, credentials } };
}

const invalid = (message: Words): LinkAnswer<State> => ({ kind: 'invalid', faults: [{ message }] });

const missing = ({ title }: OAuthClient): Words => ({
  en: `${title} did not give all permissions. Try again, and allow everything that ${title} asks for.`,
  de: `${title} hat nicht alle Berechtigungen erteilt. Bitte erlauben Sie alles, wonach ${title} fragt.`,
});

const late = ({ title }: OAuthClient): Words => ({
  en: `The answer of ${title} is too old, or was used before. Try again.`,
  de: `Die Antwort von ${title} ist zu alt oder wurde schon verwendet. Bitte versuchen Sie es noch einmal.`,
});

const noMailbox = ({ title }: OAuthClient): Words => ({
  en: `This ${title} account has no mailbox. Try again with another account.`,
  de: `Dieses Konto bei ${title} hat kein Postfach. Bitte wählen Sie ein anderes Konto.`,
});

/** Describes an error of the provider's page without its text: any page can send the browser to this address. */
function refusal({ title }: OAuthClient, error: string): Words {
  if (error === 'access_denied')
    return {
      en: `${title} was not allowed to link the account. Try again, or go back to the application.`,
      de: `Der Zugriff bei ${title} wurde nicht erlaubt. Versuchen Sie es noch einmal, oder gehen Sie zur Anwendung zurück.`,
    };
  const code = /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : '';
  return {
    en: `${title} ended the sign-in${code}. Try again, or ask the administrator of your mailbox.`,
    de: `${title} hat die Anmeldung beendet${code}. Versuchen Sie es noch einmal, oder fragen Sie Ihre Administration.`,
  };
}
