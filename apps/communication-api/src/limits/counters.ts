import { isHeadgateError } from 'headgate';
import { ServiceError } from '../domain/service-error.ts';

/**
 * Does something with the counters.
 * @throws ServiceError 503 if they are on a server that does not answer
 */
export async function withCounters<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isHeadgateError(error, 'store_timeout') || isHeadgateError(error, 'store_unavailable'))
      throw new ServiceError(503, 'errors/service_unavailable', 'The counters cannot be reached. Try again.', {
        retryAfter: 1,
        cause: error,
      });
    throw error;
  }
}
