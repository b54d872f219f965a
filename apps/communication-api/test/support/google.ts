import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createEmulator } from '@emulators/core';
import { getGoogleStore, googlePlugin, seedFromConfig } from '@emulators/google';
import { afterAll } from 'vitest';
import { noteSecret, secret } from './secret.ts';

const GMAIL = 'https://www.googleapis.com/auth/gmail.';
const COMPOSE = `${GMAIL}compose`;
const METADATA = `${GMAIL}metadata`;
const SEND = `${GMAIL}send`;
/** Where users are sent back to who give credentials to a test. */
const REDIRECT = 'http://127.0.0.1/callback';

/** The scopes of which a token needs one, from Google's description of the API. Only the scopes that we ask for. */
const NEEDED: readonly (readonly [call: RegExp, scopes: readonly string[]])[] = [
  [/^POST (?:\/upload)?\/gmail\/v1\/users\/me\/drafts(?:\/send)?$/, [COMPOSE]],
  [/^(?:GET|DELETE) \/gmail\/v1\/users\/me\/drafts\/[^/]+$/, [COMPOSE]],
  [/^POST (?:\/upload)?\/gmail\/v1\/users\/me\/messages\/send$/, [COMPOSE, SEND]],
  [/^GET \/gmail\/v1\/users\/me\/(?:messages|threads)\/[^/]+$/, [METADATA]],
  [/^GET \/gmail\/v1\/users\/me\/profile$/, [COMPOSE, METADATA]],
];

/** A request that the double got, and its answer. */
export interface GoogleRequest {
  readonly method: string;
  /** Without `/gmail/v1/users/me/`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The user of its access token. */
  readonly user: string | undefined;
  status: number | undefined;
}

/** The fault of one request, instead of an answer. */
export type GoogleFault =
  /** The connection ends. */
  | { readonly kind: 'cut'; readonly when: 'before' | 'in' | 'after' | 'in the answer' }
  /** No answer ever comes. `in`: the body is not read, either. */
  | { readonly kind: 'stall'; readonly when: 'before' | 'in' | 'after' }
  /** A different answer. `after`: Google did the work. */
  | {
      readonly kind: 'answer';
      readonly when: 'before' | 'after';
      readonly status: number;
      readonly body: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    };

/** A message as Google stores it. */
export interface GoogleMessage {
  readonly gmail_id: string;
  readonly thread_id: string;
  readonly label_ids: readonly string[];
  readonly message_id: string;
  readonly references: string | null;
  readonly bcc: string | null;
  /** The MIME message. */
  readonly mime: string;
}

/** Google: an emulator from another project, behind a server that adds the missing parts, and faults. */
export interface Google {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The settings by which a service uses it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly requests: GoogleRequest[];
  /** Chooses the fault of a request. It is called once for each. */
  fault: ((request: GoogleRequest) => GoogleFault | undefined) | undefined;
  /** Whether Google replaces the Message-ID of sent emails. Default: no. */
  replacesMessageIds: 'no' | 'silently' | 'and keeps ours';
  addUser(email: string): void;
  /** Lets Google send users back to an address. */
  allowRedirect(uri: string): void;
  /**
   * Acts like a user on Google's page. Returns the address that the browser is sent back to.
   * @param deny permissions that the user does not give
   */
  consent(authorizationUrl: string, email: string, deny?: readonly string[]): Promise<URL>;
  /** The credentials of a user who gave all named permissions. */
  credentials(email: string, scopes?: readonly string[]): Promise<object>;
  /** Makes every access token of a user invalid, or every refresh token, too. */
  forgetTokens(email: string, which: 'access' | 'all'): void;
  messages(email: string): readonly GoogleMessage[];
  sent(email: string): readonly GoogleMessage[];
  drafts(email: string): number;
  /** Stores a message from another sender to a user. */
  receive(email: string, mime: string): GoogleMessage;
}

interface RefreshToken {
  readonly email: string;
}

export async function startGoogle(): Promise<Google> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { app, store, tokenMap } = createEmulator(googlePlugin, { baseUrl: url });
  const clientId = 'service.apps.googleusercontent.com';
  const clientSecret = secret();
  seedFromConfig(store, url, {
    oauth_clients: [{ client_id: clientId, client_secret: clientSecret, name: 'Service', redirect_uris: [REDIRECT] }],
  });
  const google = getGoogleStore(store);
  const originals = new Map<string, string>();
  const messages = (email: string): readonly GoogleMessage[] =>
    google.messages
      .findBy('user_email', email)
      .map((message) => ({ ...message, mime: Buffer.from(message.raw ?? '', 'base64url').toString() }));
  const double: Google = {
    url,
    clientId,
    clientSecret,
    environment: {
      GOOGLE_CLIENT_ID: clientId,
      GOOGLE_CLIENT_SECRET: clientSecret,
      GOOGLE_ISSUER: url,
      GOOGLE_API_URL: url,
    },
    requests: [],
    fault: undefined,
    replacesMessageIds: 'no',
    addUser: (email) => seedFromConfig(store, url, { users: [{ email }] }),
    allowRedirect: (uri) => {
      const [client] = google.oauthClients.all();
      if (client !== undefined)
        google.oauthClients.update(client.id, { redirect_uris: [...client.redirect_uris, uri] });
    },
    consent: async (authorizationUrl, email, deny = []) => {
      const page = await fetch(authorizationUrl);
      if (!(await page.text()).includes(email)) throw new Error('Google does not show its page for this user.');
      const asked = new URL(authorizationUrl).searchParams;
      const scope = (asked.get('scope') ?? '').split(' ').filter((each) => !deny.includes(each));
      const form = new URLSearchParams({ ...Object.fromEntries(asked), scope: scope.join(' '), email });
      const answer = await fetch(`${url}/o/oauth2/v2/auth/callback`, {
        method: 'POST',
        body: form,
        redirect: 'manual',
      });
      return new URL(answer.headers.get('location') ?? '');
    },
    credentials: async (email, scopes = [COMPOSE, METADATA]) => {
      const query = new URLSearchParams({ client_id: clientId, redirect_uri: REDIRECT, scope: scopes.join(' ') });
      const back = await double.consent(`${url}/o/oauth2/v2/auth?${query}`, email);
      const answer = await fetch(`${url}/oauth2/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          code: back.searchParams.get('code') ?? '',
          redirect_uri: REDIRECT,
          client_id: clientId,
          client_secret: clientSecret,
        }),
      });
      const tokens = (await answer.json()) as Record<string, string>;
      return {
        accessToken: tokens.access_token,
        refreshToken: tokens.refresh_token,
        expiresAt: Date.now() + 3_600_000,
        scope: tokens.scope,
      };
    },
    forgetTokens: (email, which) => {
      for (const [token, user] of tokenMap) if (user.login === email) tokenMap.delete(token);
      if (which === 'access') return;
      const refreshTokens = store.getData<Map<string, RefreshToken>>('google.oauth.refreshTokens') ?? new Map();
      for (const [token, user] of refreshTokens) if (user.email === email) refreshTokens.delete(token);
    },
    messages,
    sent: (email) => messages(email).filter(({ label_ids }) => label_ids.includes('SENT')),
    drafts: (email) => google.drafts.findBy('user_email', email).length,
    receive: (email, mime) => {
      seedFromConfig(store, url, {
        messages: [{ user_email: email, raw: Buffer.from(mime).toString('base64url'), label_ids: ['INBOX'] } as never],
      });
      const message = messages(email).at(-1);
      if (message === undefined) throw new Error('The message was not stored.');
      return message;
    },
  };

  const userOf = (authorization = '') => tokenMap.get(authorization.replace(/^Bearer /, ''));

  /** Google's answer to a request. */
  const answer = async (call: Call): Promise<Response> => {
    const user = userOf(call.headers.authorization);
    const refusal = user && refuse(call, user.scopes);
    if (refusal !== undefined) return refusal;
    if (call.pathname.endsWith('/users/me/profile') && user !== undefined)
      return Response.json({ emailAddress: user.login, messagesTotal: 0, threadsTotal: 0, historyId: '1' });
    const response = await app.fetch(requestOf(url, call));
    if (!response.ok) return response;
    if (call.pathname === '/oauth2/token') await noteTokens(response.clone());
    if (call.pathname.endsWith('/messages/send')) return withoutPayload(response);
    if (call.pathname.endsWith('/drafts/send') && double.replacesMessageIds !== 'no')
      await replaceMessageId(response.clone());
    return call.search.includes('X-Google-Original-Message-ID') ? withOriginals(response) : response;
  };

  const replaceMessageId = async (response: Response): Promise<void> => {
    const { id } = (await response.json()) as { id: string };
    const message = google.messages.findOneBy('gmail_id', id);
    if (message === undefined) return;
    if (double.replacesMessageIds === 'and keeps ours') originals.set(id, message.message_id);
    google.messages.update(message.id, { message_id: `<CA${id}@mail.gmail.com>` });
  };

  const withOriginals = async (response: Response): Promise<Response> => {
    interface Shown {
      readonly id: string;
      readonly payload?: { readonly headers: { name: string; value: string }[] };
    }
    const body = (await response.json()) as { readonly messages?: readonly Shown[] };
    for (const { id, payload } of body.messages ?? []) {
      const value = originals.get(id);
      if (value !== undefined) payload?.headers.push({ name: 'X-Google-Original-Message-ID', value });
    }
    return Response.json(body);
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { pathname, search, searchParams } = new URL(incoming.url ?? '', url);
    const { method = 'GET' } = incoming;
    const path = pathname.replace(/^(?:\/upload)?\/gmail\/v1\/users\/me\//, '');
    const user = userOf(incoming.headers.authorization)?.login;
    const request: GoogleRequest = { method, path, query: searchParams, user, status: undefined };
    double.requests.push(request);
    const fault = double.fault?.(request);
    if (fault?.kind === 'cut' && fault.when === 'before') throw new Cut();
    if (fault?.kind === 'stall' && fault.when === 'in') return;
    const body = await bodyOf(incoming, fault);
    if (fault?.kind === 'stall' && fault.when === 'before') return;
    const call = { method, pathname, search, headers: headersOf(incoming), body };
    const answered = fault?.kind === 'answer' && fault.when === 'before' ? undefined : await answer(call);
    if (fault?.kind === 'stall') return;
    if (fault?.kind === 'cut' && fault.when === 'after') throw new Cut();
    const response = fault?.kind === 'answer' ? answerOf(fault) : answered;
    request.status = response?.status;
    await write(outgoing, response, fault);
  };
  server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return double;
}

async function noteTokens(response: Response): Promise<void> {
  const tokens = (await response.json()) as Record<string, unknown>;
  for (const name of ['access_token', 'refresh_token', 'id_token']) {
    const token = tokens[name];
    if (typeof token === 'string') noteSecret(token);
  }
}

/** The emulator answers with the whole message. Google names it only. */
async function withoutPayload(response: Response): Promise<Response> {
  const { id, threadId, labelIds } = (await response.json()) as Record<string, unknown>;
  return Response.json({ id, threadId, labelIds });
}

/** The double ends the connection. */
class Cut extends Error {}

async function bodyOf(incoming: IncomingMessage, fault: GoogleFault | undefined): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    if (fault?.kind === 'cut' && fault.when === 'in') throw new Cut();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const answerOf = ({ status, body, headers }: GoogleFault & { readonly kind: 'answer' }): Response =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });

async function write(
  outgoing: ServerResponse,
  response: Response | undefined,
  fault: GoogleFault | undefined,
): Promise<void> {
  if (response === undefined) throw new Error('There is no answer.');
  const body = Buffer.from(await response.arrayBuffer());
  const length = body.length === 0 ? {} : { 'content-length': String(body.length) };
  outgoing.writeHead(response.status, { ...Object.fromEntries(response.headers), ...length });
  if (fault?.kind === 'cut') outgoing.write(body.subarray(0, body.length / 2), () => outgoing.destroy());
  else outgoing.end(body);
}

interface Call {
  readonly method: string;
  readonly pathname: string;
  readonly search: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const headersOf = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string] =>
        typeof entry[1] === 'string' && !['connection', 'transfer-encoding', 'content-length'].includes(entry[0]),
    ),
  );

const googleError = (code: number, reason: string, status: string, message: string): Response =>
  Response.json(
    { error: { code, message, status, errors: [{ domain: 'global', reason, message }] } },
    { status: code },
  );

/** The emulator does not look at the scopes of a token. Google does. */
function refuse({ method, pathname, search }: Call, scopes: readonly string[]): Response | undefined {
  if (!pathname.includes('/gmail/')) return undefined;
  const needed = NEEDED.find(([call]) => call.test(`${method} ${pathname}`));
  if (needed === undefined) throw new Error(`No test expects ${method} ${pathname}.`);
  const isMetadata = /^\/gmail\/v1\/users\/me\/(?:messages|threads)\//.test(pathname) && method === 'GET';
  // The permission for metadata reads no bodies, and searches nothing.
  const isTooMuch = isMetadata && (!/[?&]format=(?:metadata|minimal)/.test(search) || /[?&]q=/.test(search));
  if (needed[1].some((scope) => scopes.includes(scope)) && !isTooMuch) return undefined;
  return googleError(
    403,
    'insufficientPermissions',
    'PERMISSION_DENIED',
    'Request had insufficient authentication scopes.',
  );
}

/** A request as the emulator understands it. */
function requestOf(url: string, call: Call): Request {
  const { method, pathname, search, headers, body } = call;
  if (!pathname.startsWith('/upload/'))
    return new Request(url + pathname + search, {
      method,
      headers,
      body: body.length === 0 ? null : new Uint8Array(body),
    });
  return new Request(url + pathname.replace('/upload', ''), {
    method,
    headers: { ...headers, 'content-type': 'application/json' },
    body: readUpload(call),
  });
}

/** The emulator takes an upload for the message itself. Google takes its two parts apart. */
function readUpload({ headers, body, search, pathname }: Call): string {
  const [, boundary] = /^multipart\/related; boundary=(\S+)$/.exec(headers['content-type'] ?? '') ?? [];
  const text = body.toString('latin1');
  const [before, description, mail, end] = text.split(`--${boundary}`);
  if (!search.includes('uploadType=multipart') || boundary === undefined || before !== '' || end !== '--\r\n')
    throw new Error('The upload does not consist of two parts.');
  const [json = '', mime = ''] = [description, mail].map((part = '') => part.slice(part.indexOf('\r\n\r\n') + 4, -2));
  if (!/^\r\nContent-Type: application\/json/.test(description ?? '') || !/message\/rfc822\r\n\r\n/.test(mail ?? ''))
    throw new Error('The types of the parts of the upload are wrong.');
  const raw = Buffer.from(mime, 'latin1').toString('base64url');
  const given = JSON.parse(json) as { readonly message?: object };
  return JSON.stringify(pathname.endsWith('/drafts') ? { message: { ...given.message, raw } } : { ...given, raw });
}
