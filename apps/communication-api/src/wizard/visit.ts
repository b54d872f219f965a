import type { FastifyRequest } from 'fastify';
import type { Application } from '../applications/applications.ts';
import { servedOrigin } from '../domain/application-url.ts';
import { isLanguage, type Language, languageOf } from '../domain/language.ts';
import type { LinkConfig } from '../domain/link-config.ts';
import { ServiceError } from '../domain/service-error.ts';
import type { Link } from '../links/link.ts';
import type { WizardData, WizardSession } from '../links/wizard-sessions.ts';
import type { LinkableProvider } from '../providers/registry.ts';
import type { Rooms } from '../rooms.ts';
import { cookieName, readCookie } from './cookie.ts';
import type { Frame } from './pages/layout.tsx';
import { TEXTS } from './text/text.ts';

/** A browser's session of a link. */
export interface OpenSession {
  readonly row: WizardSession;
  readonly data: WizardData;
  /** The cookie that the browser sent. */
  readonly cookie: string;
}

/** A request to the wizard for a link that exists. */
export interface Visit {
  readonly token: string;
  readonly link: Link;
  readonly config: LinkConfig;
  readonly application: Application;
  /** The providers of the link that are still installed. */
  readonly providers: readonly LinkableProvider[];
  readonly session: OpenSession | undefined;
  readonly frame: Frame;
  /** Public origin under which the browser sees the wizard. */
  readonly origin: string;
  readonly cookieName: string;
}

/** A visit with a session. */
export type SessionVisit = Visit & { readonly session: OpenSession };

declare module 'fastify' {
  interface FastifyRequest {
    /** The data that an error page needs. Set as soon as the link is known. */
    visitFrame: Frame | null;
    /** The origins, besides the wizard's own, that forms of the page lead to: see `headersOf`. */
    formOrigins: readonly string[] | null;
  }
}

/** The host of the request does not serve the wizard of this link. */
export class WrongHostError extends Error {
  override readonly name = 'WrongHostError';
}

/** The frame of a page about which no link is known. */
export const bareFrame = (request: FastifyRequest): Frame => {
  const language = askedLanguage(request) ?? languageOf(request.headers['accept-language']);
  return { language, text: TEXTS[language], application: undefined, development: false };
};

/** A browser came back from a provider's own site, but it did not leave from here. */
export class StrayCallbackError extends ServiceError {
  override readonly name = 'StrayCallbackError';

  constructor() {
    super(403, 'errors/session_mismatch', 'The sign-in was not started in this session.');
  }
}

/** The language that the address asks for. */
function askedLanguage({ query }: FastifyRequest): Language | undefined {
  const { lang } = query as { readonly lang?: unknown };
  return isLanguage(lang) ? lang : undefined;
}

/**
 * Reads the link and the session of a request.
 * @throws ServiceError 404 if the link does not exist; 401 or 409 if it is over for this browser
 * @throws WrongHostError
 */
export async function openVisit(rooms: Rooms, request: FastifyRequest): Promise<Visit> {
  const { links, applications, wizardSessions, providers, clock } = rooms;
  const { token } = request.params as { readonly token: string };
  const link = await links.resolve(token);
  if (link === undefined) throw new ServiceError(404, 'errors/resource_not_found', 'No such link exists.');
  const origin = await originOf(rooms, link, request.host.toLowerCase());
  if (origin === undefined) throw new WrongHostError();
  const application = await applications.find(link.application_id);
  if (application === undefined) throw new Error('The application of a link does not exist.');
  const name = cookieName(link, origin);
  const cookie = readCookie(request, name);
  const row = cookie === undefined ? undefined : await wizardSessions.resolve(link.id, cookie);
  const data = row === undefined ? {} : wizardSessions.dataOf(row);
  const asked = askedLanguage(request);
  if (row !== undefined && asked !== undefined && asked !== data.language) await wizardSessions.setLanguage(row, asked);
  const language = asked ?? data.language ?? languageOf(request.headers['accept-language']);
  const frame: Frame = {
    language,
    text: TEXTS[language],
    application: application.name,
    development: application.environment === 'development',
  };
  request.visitFrame = frame;
  request.formOrigins = [new URL(link.redirect_uri).origin];
  const session = row === undefined || cookie === undefined ? undefined : { row, data: { ...data, language }, cookie };
  checkOpen(link, session, clock());
  return {
    token,
    link,
    config: links.configOf(link),
    application,
    providers: providers
      .linkable(application.environment)
      .filter((provider) => link.providers.includes(provider.name))
      .sort((a, b) => link.providers.indexOf(a.name) - link.providers.indexOf(b.name)),
    session,
    frame,
    origin,
    cookieName: name,
  };
}

/** A browser that closed its link itself may still see how the link ended. */
function checkOpen(link: Link, session: OpenSession | undefined, now: number): void {
  if (session?.row.step === 'linked' || session?.row.step === 'cancelled') return;
  if (link.status === 'used') throw new ServiceError(409, 'errors/already_used', 'The link was already used.');
  if (link.status === 'cancelled') throw new ServiceError(409, 'errors/operation_canceled', 'The link was cancelled.');
  if (link.expires_on.getTime() <= now)
    throw new ServiceError(401, 'errors/expired_link', 'The link has expired. Create a new one.');
}

/** The origin of AUTH_URL, as a browser sees it. Undefined for other hosts. */
export const authOriginOf = ({ config }: Rooms, host: string): string | undefined =>
  servedOrigin(config.AUTH_URL, host);

async function originOf(rooms: Rooms, link: Link, host: string): Promise<string | undefined> {
  const origin = authOriginOf(rooms, host);
  if (origin !== undefined) return origin;
  const domain = link.domain === host ? await rooms.domains.findHost(link.application_id, host, 'auth') : undefined;
  // A browser that comes by a failing domain is served, too.
  return domain !== undefined && domain.status !== 'pending' ? `https://${host}` : undefined;
}
