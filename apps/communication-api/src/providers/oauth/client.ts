import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  Configuration,
  type CustomFetchOptions,
  customFetch,
  discovery,
  type IDToken,
  refreshTokenGrant,
  type TokenEndpointResponse,
  tokenRevocation,
} from 'openid-client';
import { isLoopback } from '../../domain/application-url.ts';
import type { Clock } from '../../domain/clock.ts';
import { type Net, readText } from '../../security/net.ts';
import { causesOf } from '../network-error.ts';
import type { OAuthCredentials } from './credentials.ts';

/** How long a request to the authorization server may take, in seconds. */
const TIMEOUT_S = 20;
/** How long the server's description of itself is used. */
const DESCRIPTION_MS = 3_600_000;
/** Tokens, keys and descriptions are some thousand bytes long. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** How long a token lasts if the server does not say it. */
const LIFETIME_S = 3_600;

export interface OAuthClientOptions {
  /** The users' name for the provider. */
  readonly title: string;
  /** The authorization server. It describes itself at `/.well-known/openid-configuration`. */
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The permissions that the authorization is asked for. */
  readonly scopes: readonly string[];
  readonly clock?: Clock | undefined;
}

/** How a request for an authorization is bound to its answer. */
export interface AuthorizationChecks {
  readonly state: string;
  readonly nonce: string;
  /** For PKCE. */
  readonly verifier: string;
}

/** The result of an authorization. */
export interface Authorization {
  /** Undefined: the server gave no refresh token. */
  readonly credentials: OAuthCredentials | undefined;
  readonly scopes: readonly string[];
  /** The server's statements about the user. */
  readonly claims: IDToken;
}

/** The service as a client of an authorization server, by OAuth 2 and OpenID Connect. */
export class OAuthClient {
  readonly #clock: Clock;
  readonly #issuer: URL;
  #description: { readonly text: string; readonly until: number } | undefined;

  constructor(private readonly options: OAuthClientOptions) {
    this.#clock = options.clock ?? Date.now;
    this.#issuer = new URL(options.issuer);
  }

  get title(): string {
    return this.options.title;
  }

  get scopes(): readonly string[] {
    return this.options.scopes;
  }

  /** The page on which the server asks its user for the authorization. */
  async authorizationEndpoint(net: Net, signal: AbortSignal): Promise<string> {
    const { authorization_endpoint: endpoint } = (await this.#configuration(net, signal)).serverMetadata();
    if (endpoint === undefined) throw new Error(`${this.title} names no authorization endpoint.`);
    return endpoint;
  }

  /** The page of the server that asks its user for the authorization. */
  authorizationUrl(
    endpoint: string,
    redirectUri: string,
    { state, nonce, challenge }: { readonly state: string; readonly nonce: string; readonly challenge: string },
    parameters: Readonly<Record<string, string>>,
  ): string {
    const server = { issuer: this.options.issuer, authorization_endpoint: endpoint };
    const configuration = new Configuration(server, this.options.clientId, this.options.clientSecret);
    if (this.#isLocal) allowInsecureRequests(configuration);
    return buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.options.scopes.join(' '),
      state,
      nonce,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      ...parameters,
    }).href;
  }

  /**
   * Exchanges the code of a callback for tokens.
   * @param callback the address that the user was sent back to, with its query
   * @throws the errors of openid-client. AuthorizationResponseError: the server sent an error instead of a code
   */
  async authorize(
    callback: URL,
    { state, nonce, verifier }: AuthorizationChecks,
    net: Net,
    signal: AbortSignal,
  ): Promise<Authorization> {
    const request = authorizationCodeGrant(await this.#configuration(net, signal), callback, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const tokens = await this.#answerTo(request);
    const claims = tokens.claims();
    if (claims === undefined) throw new Error(`${this.title} does not say who the user is.`);
    // A server that leaves out the scope granted the requested scope (RFC 6749, 5.1).
    const scope = tokens.scope ?? this.options.scopes.join(' ');
    const { refresh_token: refreshToken } = tokens;
    const credentials = refreshToken === undefined ? undefined : this.#credentialsOf(tokens, { refreshToken, scope });
    return { credentials, scopes: scope.split(' '), claims };
  }

  /** @throws the errors of openid-client. ResponseBodyError `invalid_grant`: the authorization ended */
  async refresh(stored: OAuthCredentials, net: Net): Promise<OAuthCredentials> {
    const configuration = await this.#configuration(net);
    const tokens = await this.#answerTo(refreshTokenGrant(configuration, stored.refreshToken));
    return this.#credentialsOf(tokens, stored);
  }

  /** Ends an authorization, if the server supports it. */
  async revoke({ refreshToken }: OAuthCredentials, net: Net, signal: AbortSignal): Promise<void> {
    const configuration = await this.#configuration(net, signal);
    if (configuration.serverMetadata().revocation_endpoint === undefined) return;
    await this.#answerTo(tokenRevocation(configuration, refreshToken, { token_type_hint: 'refresh_token' }));
  }

  /**
   * The error of an unreadable answer quotes a part of it, which may be a token. A different error is thrown instead.
   */
  async #answerTo<Answer>(request: Promise<Answer>): Promise<Answer> {
    try {
      return await request;
    } catch (error) {
      if (causesOf(error).some((cause) => cause instanceof SyntaxError))
        throw new Error(`The answer of ${this.title} cannot be read.`);
      throw error;
    }
  }

  /** Whether a token has expired, or will expire before a request with it is answered. */
  isExpired({ expiresAt }: OAuthCredentials): boolean {
    return expiresAt - 60_000 <= this.#clock();
  }

  #credentialsOf(
    tokens: TokenEndpointResponse,
    { refreshToken, scope }: Pick<OAuthCredentials, 'refreshToken' | 'scope'>,
  ): OAuthCredentials {
    return {
      accessToken: tokens.access_token,
      refreshToken: tokens.refresh_token ?? refreshToken,
      expiresAt: this.#clock() + (tokens.expires_in ?? LIFETIME_S) * 1_000,
      scope: tokens.scope ?? scope,
    };
  }

  /** A test, or a proxy of the operator, may be at a loopback address without TLS. */
  get #isLocal(): boolean {
    return this.#issuer.protocol === 'http:' && isLoopback(this.#issuer.hostname);
  }

  /** The server as it describes itself. Each account uses its own way out, so each call makes a configuration. */
  async #configuration(net: Net, signal?: AbortSignal): Promise<Configuration> {
    const { clientId, clientSecret } = this.options;
    return discovery(this.#issuer, clientId, clientSecret, undefined, {
      timeout: TIMEOUT_S,
      [customFetch]: (url, options) => this.#fetch(url, options, net, signal),
      execute: this.#isLocal ? [allowInsecureRequests] : [],
    });
  }

  async #fetch(url: string, options: CustomFetchOptions, net: Net, signal?: AbortSignal): Promise<Response> {
    const { protocol, hostname, pathname } = new URL(url);
    if (protocol !== 'https:' && !isLoopback(hostname)) throw new Error(`${this.title} names an address without TLS.`);
    const signals = [options.signal, signal].filter((each) => each !== undefined);
    const init = { ...options, body: options.body as BodyInit, signal: AbortSignal.any(signals) };
    const fetch = async (): Promise<Response> => {
      const response = await net.fetch(url, init);
      const text = await readText(response, MAX_ANSWER_BYTES);
      // Responses of some statuses must not contain a body.
      return new Response(text === '' ? null : text, { status: response.status, headers: response.headers });
    };
    if (!pathname.endsWith('/.well-known/openid-configuration')) return fetch();
    if (this.#description === undefined || this.#description.until < this.#clock()) {
      const response = await fetch();
      if (response.status !== 200) return response;
      this.#description = { text: await response.text(), until: this.#clock() + DESCRIPTION_MS };
    }
    return new Response(this.#description.text, { headers: { 'content-type': 'application/json' } });
  }
}
