import type { z } from 'zod';
import type { Account } from '../../accounts/accounts.ts';
import type { Application } from '../../applications/applications.ts';
import type { LinkConfig } from '../../domain/link-config.ts';
import { checkExpiry, checkRedirectUri, offeredBy, selectionOf } from '../../domain/link-request.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { NewLink } from '../../links/links.ts';
import type { Rooms } from '../../rooms.ts';
import { customDomain } from '../domains/custom-domain.ts';
import type { linkRequest } from './schema.ts';

/** The purpose of a link: to link a new account, or to reconnect one. */
export type LinkTarget = Pick<NewLink, 'providers' | 'accountId' | 'scopeId'>;

type LinkOptions = Pick<z.output<typeof linkRequest>, 'expires_on' | 'redirect_uri' | 'state' | 'domain' | 'config'>;

/** A link that can be created. */
export interface CheckedLink {
  readonly link: Omit<NewLink, 'keyId'>;
  /** Its address, with the token that it gets. */
  addressOf(token: string): string;
}

/**
 * Checks the request for a link.
 * @throws ServiceError 422
 */
export async function checkedLink(
  rooms: Rooms,
  application: Application,
  target: LinkTarget,
  options: LinkOptions,
): Promise<CheckedLink> {
  const { config, clock } = rooms;
  const expiresOn = new Date(options.expires_on);
  checkExpiry(expiresOn, clock());
  checkRedirectUri(options.redirect_uri, {
    environment: application.environment,
    allowed: application.redirect_uris,
  });
  const domain =
    options.domain === undefined
      ? undefined
      : await customDomain(rooms, application.id, 'auth', { field: 'domain', text: options.domain });
  const origin = domain === undefined ? config.AUTH_URL : `https://${domain}`;
  return {
    link: {
      ...target,
      config: (options.config ?? {}) as LinkConfig,
      redirectUri: options.redirect_uri,
      state: options.state ?? null,
      domain: domain ?? null,
      expiresOn,
    },
    addressOf: (token) => `${origin}/auth/l/${token}`,
  };
}

/**
 * The target of a link that reconnects an account.
 * @throws ServiceError 403 if its provider cannot be linked here any more, 422 if its scope is disabled
 */
export async function reconnectionOf(
  rooms: Rooms,
  { environment }: Application,
  { id, application_id, provider, scope_id }: Account,
): Promise<LinkTarget> {
  if (scope_id !== null) await checkLinkScope(rooms, application_id, scope_id);
  const providers = offeredBy(selectionOf([provider]), rooms.providers.linkable(environment));
  return { providers, accountId: id, scopeId: scope_id };
}

/** @throws ServiceError 404 or 422 */
export async function checkLinkScope({ scopes }: Rooms, applicationId: string, scopeId: string): Promise<void> {
  const status = (await scopes.find(applicationId, scopeId))?.status;
  if (status === undefined)
    throw new ServiceError(404, 'errors/invalid_resource_identifier', 'scope_id: your application has no such scope.');
  if (status === 'disabled')
    throw new ServiceError(
      422,
      'errors/unprocessable_entity',
      'scope_id: the scope is disabled. Enable it, or use a different scope.',
    );
}
