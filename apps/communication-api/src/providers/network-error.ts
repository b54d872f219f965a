import type { ErrorExtras } from '../domain/service-error.ts';
import { EgressError } from '../security/net.ts';
import { ProviderError, type Sent } from './provider.ts';

/**
 * The error of a request that got no answer.
 * @param title the users' name for the provider
 * @param sent whether the email was sent if the request reached the provider
 */
export function networkError(title: string, error: unknown, sent: Sent = 'no'): ProviderError {
  const causes = causesOf(error);
  const egress = causes.find((cause) => cause instanceof EgressError);
  const extras = { cause: error };
  if (egress?.failure === 'proxy_credentials') return proxyRefused(extras);
  // No connection was made, so nothing reached the provider.
  if (egress !== undefined)
    return new ProviderError('no', 503, 'errors/network_down', `${title} cannot be reached.`, extras);
  const isTimeout = causes.some(({ name }) => name === 'TimeoutError' || name === 'AbortError');
  if (isTimeout || sent === 'unknown')
    return new ProviderError(sent, 504, 'errors/request_timeout', `${title} did not answer.`, extras);
  return new ProviderError('no', 503, 'errors/network_down', `The connection to ${title} broke.`, extras);
}

/** The proxy of an account refused the service, so nothing reached the provider. */
export const proxyRefused = (extras: ErrorExtras): ProviderError =>
  new ProviderError(
    'no',
    401,
    'errors/invalid_proxy_credentials',
    'The proxy of the account does not accept its user name or password.',
    extras,
  );

/** An error and its causes, the outermost first. */
export function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && !causes.includes(next); next = next.cause) causes.push(next);
  return causes;
}
