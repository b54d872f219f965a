import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { z } from 'zod';
import type { Application } from '../../applications/applications.ts';
import type { LinkConfig } from '../../domain/link-config.ts';
import { checkExpiry, checkRedirectUri, offeredBy, selectionOf, variantOf } from '../../domain/link-request.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Caller } from '../../keys/keys.ts';
import type { NewLink } from '../../links/links.ts';
import type { Rooms } from '../../rooms.ts';
import { accessibleAccount } from '../accounts/accessible-account.ts';
import { callerOf } from '../authenticate.ts';
import { customDomain } from '../domains/custom-domain.ts';
import { problems } from '../problem.ts';
import { authLink, linkRequest } from './schema.ts';

type LinkRequest = z.output<typeof linkRequest>;

const invalid = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

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
  const { applications, links, config, clock } = rooms;
  const { applicationId, keyId } = caller;
  const application = await applications.find(applicationId);
  if (application === undefined) throw new Error('The application of a key does not exist.');
  const target = await targetOf(rooms, caller, application, body);
  const expiresOn = new Date(body.expires_on);
  checkExpiry(expiresOn, clock());
  checkRedirectUri(body.redirect_uri, {
    environment: application.environment,
    allowed: application.redirect_uris,
  });
  const domain =
    body.domain === undefined
      ? undefined
      : await customDomain(rooms, applicationId, 'auth', { field: 'domain', text: body.domain });
  const { id, token } = await links.create(applicationId, {
    ...target,
    keyId,
    config: (body.config ?? {}) as LinkConfig,
    redirectUri: body.redirect_uri,
    state: body.state ?? null,
    domain: domain ?? null,
    expiresOn,
  });
  const origin = domain === undefined ? config.AUTH_URL : `https://${domain}`;
  return { object: 'AuthLink', id, link: `${origin}/auth/l/${token}`, expires_on: expiresOn.toISOString() };
}

/** The providers, the account and the scope of a link. */
async function targetOf(
  rooms: Rooms,
  caller: Caller,
  application: Application,
  body: LinkRequest,
): Promise<Pick<NewLink, 'providers' | 'accountId' | 'scopeId'>> {
  const { accounts, providers } = rooms;
  const variant = variantOf(body);
  const installed = providers.linkable(application.environment);
  if (variant.kind === 'connect') {
    const scopeId = await scopeOf(rooms, caller, body.scope_id);
    return { providers: offeredBy(variant.selection, installed), accountId: null, scopeId };
  }
  if (body.scope_id !== undefined)
    throw invalid('scope_id: the scope of an account that is reconnected does not change.');
  const account = await accessibleAccount(accounts, caller, variant.accountId);
  if (account.scope_id !== null) await checkScope(rooms, caller, account.scope_id);
  const selection = selectionOf([account.provider]);
  return { providers: offeredBy(selection, installed), accountId: account.id, scopeId: account.scope_id };
}

/** The scope of a new account: the one of a scoped key, or the one that a service key asks for. */
async function scopeOf(rooms: Rooms, caller: Caller, asked: string | undefined): Promise<string | null> {
  if (asked === undefined) return caller.scopeId;
  if (caller.role !== 'service')
    throw new ServiceError(
      403,
      'errors/insufficient_permissions',
      'scope_id: only a service API key may choose a scope.',
    );
  await checkScope(rooms, caller, asked);
  return asked;
}

async function checkScope({ scopes }: Rooms, { applicationId }: Caller, scopeId: string): Promise<void> {
  const status = (await scopes.find(applicationId, scopeId))?.status;
  if (status === undefined)
    throw new ServiceError(404, 'errors/invalid_resource_identifier', 'scope_id: your application has no such scope.');
  if (status === 'disabled') throw invalid('scope_id: the scope is disabled. Enable it, or use another one.');
}
