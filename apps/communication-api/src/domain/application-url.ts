import type { Environment } from './key-token.ts';
import { ServiceError } from './service-error.ts';

const invalid = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);

/**
 * Checks the form of an address of an application: https, or for development also http to the same machine.
 * @param field the field of the request that contains the address
 * @throws ServiceError 422 that says why the address is wrong
 */
export function checkApplicationUrl(field: string, text: string, environment: Environment): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw invalid(`${field}: must be an https address.`);
  if (url.protocol === 'http:' && !(environment === 'development' && isLoopback(url.hostname)))
    throw invalid(
      environment === 'development'
        ? `${field}: must be https, or http to a loopback address such as http://localhost:3000.`
        : `${field}: must be https. Only development applications may use http to a loopback address.`,
    );
  // `hash` is empty for an empty fragment, but the address would still end in "#".
  if (text.includes('#')) throw invalid(`${field}: must not have a fragment.`);
  if (url.username !== '' || url.password !== '') throw invalid(`${field}: must not have a user name or password.`);
  return url;
}

/** Whether a host, as `URL.hostname` writes it, is this machine. */
export const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127(\.\d{1,3}){3}$/.test(hostname);

/**
 * The public origin of a request, as its browser sees it. Undefined if the host differs from the host of the origin.
 * @param publicUrl an origin of the settings, such as BASE_URL
 * @param host of the request, in lower case
 */
export function servedOrigin(publicUrl: string, host: string): string | undefined {
  const own = new URL(publicUrl);
  if (host === own.host) return own.origin;
  // `localhost` and `127.0.0.1` are the same machine.
  if (isLoopback(own.hostname) && URL.canParse(`http://${host}`) && isLoopback(new URL(`http://${host}`).hostname))
    return `${own.protocol}//${host}`;
  return undefined;
}
