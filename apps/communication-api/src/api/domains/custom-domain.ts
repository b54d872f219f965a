import { customHost, type DomainPurpose } from '../../domain/custom-domain.ts';
import { ServiceError } from '../../domain/service-error.ts';
import { type Creation, type Domain, MAX_DOMAINS } from '../../domains/domains.ts';
import type { Rooms } from '../../rooms.ts';

/** The hosts of the service itself, which no application can claim. */
export const ownHosts = ({ BASE_URL, AUTH_URL, TRACKING_URL }: Rooms['config']): readonly string[] =>
  [BASE_URL, AUTH_URL, TRACKING_URL].map((url) => new URL(url).hostname);

/**
 * Adds a custom domain to an application.
 * @param text the host, as it was entered
 * @param create stores the domain of a host
 * @throws ServiceError 422 if the host cannot be a custom domain, 409 if the application uses it already or owns too
 * many
 */
export async function addDomain(
  { config }: Rooms,
  text: string,
  create: (host: string) => Promise<Creation>,
): Promise<Domain> {
  const host = customHost(text);
  if (host === undefined) throw invalid('host: give a host name such as connect.app.example.');
  if (ownHosts(config).includes(host)) throw invalid('host: this is a host of the service itself.');
  const creation = await create(host);
  if (creation.kind === 'exists')
    throw new ServiceError(409, 'errors/already_exists', 'Your application has a domain with this host.');
  if (creation.kind === 'too many')
    throw new ServiceError(
      409,
      'errors/conflict',
      `Your application has ${MAX_DOMAINS} domains, which is the limit. Delete one first.`,
    );
  return creation.domain;
}

/** @throws ServiceError 409 if another application verified the host */
export function checkTaken<Checked>(checked: Checked | 'taken'): Checked {
  if (checked === 'taken')
    throw new ServiceError(409, 'errors/conflict', 'Another application has verified this host.');
  return checked;
}

const invalid = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

/**
 * The custom domain that a field of a request names. Returns undefined if the domain fails: the caller uses the default
 * host.
 * @throws ServiceError 422 if the application did not verify the domain
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
    throw invalid(`${field}: not a verified ${kind} domain of your application.`);
  }
  if (domain.status === 'verified') return domain.host;
  log.warn({ domain: domain.id, host: domain.host }, 'a custom domain fails: the default host is used');
  return undefined;
}
