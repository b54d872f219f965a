import { customHost, type DomainPurpose } from '../../domain/custom-domain.ts';
import { ServiceError } from '../../domain/service-error.ts';
import type { Rooms } from '../../rooms.ts';

/** The hosts of the service itself, which no application can have. */
export const ownHosts = ({ BASE_URL, AUTH_URL, TRACKING_URL }: Rooms['config']): readonly string[] =>
  [BASE_URL, AUTH_URL, TRACKING_URL].map((url) => new URL(url).hostname);

/**
 * The custom domain that a field of a request names. Undefined if the domain fails: the caller uses the default host.
 * @throws ServiceError 422 if the application has not verified it
 */
export async function customDomain(
  { domains, log }: Rooms,
  applicationId: string,
  purpose: DomainPurpose,
  { field, text }: { readonly field: string; readonly text: string },
): Promise<string | undefined> {
  const host = customHost(text);
  const domain = host === undefined ? undefined : await domains.findHost(applicationId, host, purpose);
  if (domain === undefined || domain.status === 'pending') {
    const kind = purpose === 'auth' ? 'wizard' : 'tracking';
    throw new ServiceError(
      422,
      'errors/unprocessable_entity',
      `${field}: not a verified ${kind} domain of your application.`,
    );
  }
  if (domain.status === 'verified') return domain.host;
  log.warn({ domain: domain.id, host: domain.host }, 'a custom domain fails: the default host is used');
  return undefined;
}
