import type { SendOutcome } from '../domain/send-outcome.ts';
import { ServiceError } from '../domain/service-error.ts';
import { ProviderError } from '../providers/provider.ts';
import { isVerdict } from './sender.ts';

/** What an attempt to send came to that ended with an error. */
export function outcomeOfError(error: unknown): SendOutcome {
  if (error instanceof ProviderError) {
    if (error.sent === 'unknown') return 'unknown';
    return isVerdict(error) ? 'failed' : 'not_sent';
  }
  return error instanceof ServiceError ? 'refused' : 'error';
}
