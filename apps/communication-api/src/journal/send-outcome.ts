import { ServiceError } from '../domain/service-error.ts';
import { ProviderError } from '../providers/provider.ts';
import { isVerdict } from './sender.ts';

/**
 * What an attempt to send came to. `failed`: the provider refused the email; `not_sent`: it did not take the email, and a
 * retry may succeed; `unknown`: it is not known whether the email was sent; `refused`: an earlier request with the same
 * key stands in the way; `error`: the service itself failed.
 */
export type SendOutcome = 'sent' | 'replayed' | 'failed' | 'not_sent' | 'unknown' | 'refused' | 'error';

export function outcomeOfError(error: unknown): SendOutcome {
  if (error instanceof ProviderError) {
    if (error.sent === 'unknown') return 'unknown';
    return isVerdict(error) ? 'failed' : 'not_sent';
  }
  return error instanceof ServiceError ? 'refused' : 'error';
}
