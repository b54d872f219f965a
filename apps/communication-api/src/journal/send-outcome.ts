import type { SendOutcome } from '../domain/send-outcome.ts';
import { ServiceError } from '../domain/service-error.ts';
import { ProviderError } from '../providers/provider.ts';
import type { Send } from './send-records.ts';

/** The result of a send. */
export interface SendResult {
  readonly id: string;
  readonly providerId: string | null;
  readonly immutableId: string | null;
  /** True if an earlier request with the same idempotency key sent the email. */
  readonly wasSentBefore: boolean;
}

/** The provider judged the email itself: it would refuse the same email again. */
export const isVerdict = (error: unknown): boolean =>
  error instanceof ProviderError && [403, 409, 422].includes(error.status);

/** The outcome of an attempt to send that ended with an error. */
export function outcomeOfError(error: unknown): SendOutcome {
  if (error instanceof ProviderError) {
    if (error.sent === 'unknown') return 'unknown';
    return isVerdict(error) ? 'failed' : 'not_sent';
  }
  return error instanceof ServiceError ? 'refused' : 'error';
}

/**
 * The stored outcome of a row.
 * @throws ServiceError the stored error
 */
export function outcomeOf({ id, state, error, provider_id, provider_immutable_id }: Send): SendResult | undefined {
  if (state === 'sent') return { id, providerId: provider_id, immutableId: provider_immutable_id, wasSentBefore: true };
  if (state === 'failed' && error !== null) {
    // The pair came from a ServiceError, whose constructor checked it.
    throw new ServiceError(
      ...([error.status, error.type, error.detail] as unknown as ConstructorParameters<typeof ServiceError>),
    );
  }
  return undefined;
}
