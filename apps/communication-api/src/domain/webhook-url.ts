import type { Environment } from './key-token.ts';
import { isLoopback } from './link-request.ts';
import { ServiceError } from './service-error.ts';

/**
 * Checks the form of an endpoint's address. Where it leads to is judged at each request.
 * @throws ServiceError 422 that says what is wrong with the address
 */
export function checkWebhookUrl(text: string, environment: Environment): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw invalid('url: must be an https address.');
  if (url.protocol === 'http:' && !(environment === 'development' && isLoopback(url.hostname)))
    throw invalid(
      environment === 'development'
        ? 'url: must be https, or http to a loopback address such as http://localhost:3000.'
        : 'url: must be https. Only development applications may use http to a loopback address.',
    );
  if (text.includes('#')) throw invalid('url: must not have a fragment.');
  if (url.username !== '' || url.password !== '') throw invalid('url: must not have a user name or password.');
}

const invalid = (detail: string): ServiceError => new ServiceError(422, 'errors/unprocessable_entity', detail);
