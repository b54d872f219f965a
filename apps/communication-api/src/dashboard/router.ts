import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { servedOrigin } from '../domain/application-url.ts';
import {
  type ApplicationAction,
  mayInApplication,
  mayInOrganization,
  type OrganizationAction,
} from '../domain/member-roles.ts';
import type { DashboardPart } from '../domain/second-factor.ts';
import { ServiceError } from '../domain/service-error.ts';
import { type MemberSession, SESSION_MS } from '../people/member-sessions.ts';
import type { Rooms } from '../rooms.ts';
import type { Csrf } from '../wizard/csrf.ts';
import { isFromOtherSite } from '../wizard/csrf.ts';
import { WrongHostError } from '../wizard/visit.ts';
import { seeOther } from './answers.tsx';
import { type Entered, enteredIn, forbid, Here, type HereInApplication, unknown } from './here.ts';
import { PATHS } from './paths.ts';

/** The API's document does not contain the pages. */
export const HIDDEN = { schema: { hide: true } };

type Handler = (here: Here) => Promise<FastifyReply>;
type ApplicationHandler = (at: HereInApplication) => Promise<FastifyReply>;
type Method = 'get' | 'post';

/** An action on the organization, or on the own login; `set-up`: also without a second factor that is required. */
type Action = OrganizationAction | 'own login' | 'set-up';

const NOTHING: Entered = new Map();

/**
 * Registers pages and forms of people who signed in. Each names its action, and no handler runs unless the role of the
 * person allows this action. A form must also come from one of the session's own pages.
 */
export class Router {
  constructor(
    private readonly app: FastifyInstance,
    private readonly rooms: Rooms,
    private readonly csrf: Csrf,
  ) {}

  page(path: string, action: Action, handler: Handler): void {
    this.#ofOrganization('get', path, action, handler);
  }

  form(path: string, action: Action, handler: Handler): void {
    this.#ofOrganization('post', path, action, handler);
  }

  /** A page about one application. Its path contains the parameter `application`. */
  applicationPage(path: string, action: ApplicationAction, handler: ApplicationHandler): void {
    this.#ofApplication('get', path, action, handler);
  }

  applicationForm(path: string, action: ApplicationAction, handler: ApplicationHandler): void {
    this.#ofApplication('post', path, action, handler);
  }

  #ofOrganization(method: Method, path: string, action: Action, handler: Handler): void {
    this.#route(method, path, async (here) => {
      if (action === 'own login' || action === 'set-up') return this.#pass(here, action, () => handler(here));
      if (!mayInOrganization(here.member.role, action)) forbid();
      // It shows no more than names, and leads to the applications for development.
      const part = action === 'list applications' ? 'development' : 'organization';
      return this.#pass(here, part, () => handler(here));
    });
  }

  #ofApplication(method: Method, path: string, action: ApplicationAction, handler: ApplicationHandler): void {
    this.#route(method, path, async (here) => {
      const { application: id } = here.request.params as { readonly application: string };
      const application = (await this.rooms.applications.findIn(here.organization.id, id)) ?? unknown();
      if (!mayInApplication(here.member.role, action, application.environment)) forbid();
      return this.#pass(here, application.environment, () => handler({ here, application }));
    });
  }

  /** Runs the handler of a request that the role allows, if the form and the second factor do, too. */
  async #pass(here: Here, part: DashboardPart, handle: () => Promise<FastifyReply>): Promise<FastifyReply> {
    checkForm(here, this.rooms);
    return here.lacksSecondFactorFor(part) ? seeOther(here.reply, PATHS.secondFactor) : handle();
  }

  #route(method: Method, path: string, handler: Handler): void {
    this.app[method](path.slice(PATHS.home.length), HIDDEN, async (request, reply) => {
      const session = await sessionOf(this.rooms, request);
      if (session === undefined) return seeOther(reply, signInPath(request));
      const organization = await this.rooms.people.organizations.find(session.member.organization_id);
      if (organization === undefined) throw new Error('The organization of a member does not exist.');
      const entered = method === 'post' ? enteredIn(request) : NOTHING;
      return handler(new Here(request, reply, session, organization, entered, this.csrf));
    });
  }
}

/** @throws ServiceError 403 if a form was not made for this session */
function checkForm(here: Here, rooms: Rooms): void {
  const { request } = here;
  if (request.method !== 'POST') return;
  if (isFromOtherSite(request, originOf(rooms, request)) || !here.hasFormOf(pathOnly(request))) throw forgedForm();
}

export const forgedForm = (): ServiceError =>
  new ServiceError(403, 'errors/session_mismatch', 'The form was not made for this session.');

/** @throws WrongHostError if a request is not for the host of the dashboard */
export function originOf({ config }: Rooms, { host }: FastifyRequest): string {
  const origin = servedOrigin(config.BASE_URL, host.toLowerCase());
  if (origin === undefined) throw new WrongHostError();
  return origin;
}

/** The session of a browser. */
export async function sessionOf(rooms: Rooms, request: FastifyRequest): Promise<MemberSession | undefined> {
  const cookie = readCookie(rooms, request, 'dashboard');
  return cookie === undefined ? undefined : rooms.people.sessions.resolve(cookie);
}

type CookieName = 'dashboard' | 'dashboard-form' | 'dashboard-pending';

/** The prefix `__Host-` keeps other hosts of the domain from setting a cookie, but browsers take it over https only. */
const cookieName = (rooms: Rooms, request: FastifyRequest, name: CookieName): string =>
  originOf(rooms, request).startsWith('https:') ? `__Host-${name}` : name;

export function readCookie(rooms: Rooms, request: FastifyRequest, name: CookieName): string | undefined {
  const value = request.cookies[cookieName(rooms, request, name)];
  return value === undefined || value === '' ? undefined : value;
}

/** Sets a cookie. An empty one is removed. Default of `lastsMs`: as long as a session lasts at most. */
export function setCookie(
  rooms: Rooms,
  request: FastifyRequest,
  reply: FastifyReply,
  name: CookieName,
  value: string,
  lastsMs = SESSION_MS,
): void {
  const fullName = cookieName(rooms, request, name);
  const secure = fullName.startsWith('__Host-');
  const maxAge = value === '' ? 0 : lastsMs / 1_000;
  // A link in an email opens the dashboard by a navigation from another site.
  reply.setCookie(fullName, value, { path: '/', httpOnly: true, sameSite: 'lax', secure, maxAge });
}

/** The path without its query and without a slash at its end. */
export const pathOnly = ({ url }: FastifyRequest): string => (url.split('?')[0] ?? '').replace(/\/$/, '');

/** The page for signing in, which leads back to the page that was asked for. */
function signInPath(request: FastifyRequest): string {
  const path = pathOnly(request);
  return request.method === 'GET' && path !== PATHS.home
    ? `${PATHS.signIn}?next=${encodeURIComponent(path)}`
    : PATHS.signIn;
}
