import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { Application } from '../../applications/applications.ts';
import { offeredBy, variantOf } from '../../domain/link-request.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';
import type { Rooms } from '../../rooms.ts';
import { accessibleAccount } from '../accounts/accessible-account.ts';
import { callerOf } from '../authenticate.ts';
import { problems } from '../problem.ts';
import { checkedLink, checkLinkScope, type LinkTarget, reconnectionOf } from './new-link.ts';
import { authLink, linkRequest } from './schema.ts';

type LinkRequest = z.output<typeof linkRequest>;

export const linkRoutes: FastifyPluginAsyncZod<{ rooms: Rooms }> = async (app, { rooms }) => {
  app.post(
    '/v2/auth/link',
    {
      schema: {
        operationId: 'createAuthLink',
        summary: 'Create a link to the wizard',
        description:
          'Send the user to the link. The wizard links a new account, or reconnects an existing one, and sends the user back to redirect_uri.',
        tags: ['Links'],
        body: linkRequest,
        response: { 200: authLink, ...problems(404) },
      },
    },
    async (request) => createLink(rooms, callerOf(request), request.body),
  );
};

async function createLink(rooms: Rooms, caller: Caller, body: LinkRequest): Promise<z.input<typeof authLink>> {
  const { applications, links } = rooms;
  const { applicationId, keyId } = caller;
  const application = await applications.find(applicationId);
  if (application === undefined) throw new Error('The application of a key does not exist.');
  const target = await targetOf(rooms, caller, application, body);
  const { link, addressOf } = await checkedLink(rooms, application, target, body);
  const { id, token } = await links.create(applicationId, { ...link, keyId });
  return { object: 'AuthLink', id, link: addressOf(token), expires_on: link.expiresOn.toISOString() };
}

/** The providers, the account and the scope of a link. */
async function targetOf(
  rooms: Rooms,
  caller: Caller,
  application: Application,
  body: LinkRequest,
): Promise<LinkTarget> {
  const variant = variantOf(body);
  if (variant.kind === 'connect') {
    const scopeId = await scopeOf(rooms, caller, body.scope_id);
    const installed = rooms.providers.linkable(application.environment);
    return { providers: offeredBy(variant.selection, installed), accountId: null, scopeId };
  }
  if (body.scope_id !== undefined)
    throw new ServiceError(
      422,
      'errors/unprocessable_entity',
      'scope_id: the scope of an account that is reconnected does not change.',
    );
  const account = await accessibleAccount(rooms.accounts, caller, variant.accountId);
  return reconnectionOf(rooms, application, account);
}

/** The scope of a new account: the scope of a scoped key, or the scope that a service key names. */
async function scopeOf(rooms: Rooms, caller: Caller, asked: string | undefined): Promise<string | null> {
  if (asked === undefined) return caller.scopeId;
  if (caller.role !== 'service')
    throw new ServiceError(
      403,
      'errors/insufficient_permissions',
      'scope_id: only a service API key may choose a scope.',
    );
  await checkLinkScope(rooms, caller.applicationId, asked);
  return asked;
}
