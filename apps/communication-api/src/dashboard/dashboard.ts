import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { DASHBOARD_STYLESHEET } from '../assets.ts';
import type { Rooms } from '../rooms.ts';
import { Csrf } from '../wizard/csrf.ts';
import { accountRoutes } from './account-routes.tsx';
import { answerError, seeOther } from './answers.tsx';
import { applicationRoutes } from './application-routes.tsx';
import { auditRoutes } from './audit-routes.tsx';
import { deliveryRoutes } from './delivery-routes.tsx';
import { domainRoutes } from './domain-routes.tsx';
import { emailRoutes } from './email-routes.tsx';
import { UnknownPageError } from './here.ts';
import { keyRoutes } from './key-routes.tsx';
import { limitRoutes } from './limit-routes.tsx';
import { loginRoutes } from './login-routes.tsx';
import { mailboxRoutes } from './mailbox-routes.tsx';
import { memberRoutes } from './member-routes.tsx';
import { PATHS } from './paths.ts';
import { HIDDEN, originOf, Router } from './router.ts';
import { scopeRoutes } from './scope-routes.tsx';
import { secondFactorRoutes } from './second-factor-routes.tsx';
import { sessionRoutes } from './session-routes.tsx';
import { createSignInLimit } from './sign-in-limit.ts';
import { signInRoutes } from './sign-in-routes.tsx';
import { webhookRoutes } from './webhook-routes.tsx';

const YEAR_SECONDS = 31_536_000;

/** Where people manage the applications of their organization. */
export const dashboard: FastifyPluginAsync<{ rooms: Rooms }> = async (app, { rooms }) => {
  await app.register(cookie);
  await app.register(async (inner) => addDashboard(inner, rooms), { prefix: PATHS.home });
};

function addDashboard(app: FastifyInstance, rooms: Rooms): void {
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((request, reply) => answerError(new UnknownPageError(), request, reply));
  app.addHook('onRequest', async (request) => void originOf(rooms, request));
  const { path, contentType, body } = DASHBOARD_STYLESHEET;
  app.get(path.slice(PATHS.home.length), HIDDEN, async (_, reply) =>
    reply
      .type(contentType)
      .header('cache-control', `public, max-age=${YEAR_SECONDS}, immutable`)
      .header('x-content-type-options', 'nosniff')
      .send(body),
  );
  app.get('/', HIDDEN, async (_, reply) => seeOther(reply, PATHS.applications));
  const csrf = new Csrf(rooms.envelope);
  const router = new Router(app, rooms, csrf);
  const limit = createSignInLimit(rooms);
  signInRoutes(app, rooms, csrf, limit);
  applicationRoutes(router, rooms);
  keyRoutes(router, rooms);
  accountRoutes(router, rooms);
  mailboxRoutes(router, rooms);
  emailRoutes(router, rooms);
  limitRoutes(router, rooms);
  webhookRoutes(router, rooms);
  deliveryRoutes(router, rooms);
  scopeRoutes(router, rooms);
  domainRoutes(router, rooms);
  memberRoutes(router, rooms);
  auditRoutes(router, rooms);
  loginRoutes(router, rooms, limit);
  secondFactorRoutes(router, rooms, limit);
  sessionRoutes(router, rooms);
}
