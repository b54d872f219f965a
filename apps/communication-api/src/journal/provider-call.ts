import type { ServiceError } from '../domain/service-error.ts';
import { ProviderError } from '../providers/provider.ts';

/** How long after its deadline a provider may take to report the outcome of an email. */
const LATE_MS = 200;

const timedOut = (): ServiceError =>
  new ProviderError('unknown', 504, 'errors/request_timeout', 'The provider did not answer in time.');

/**
 * A call of a provider that ends in time, also if the provider ignores the signal.
 * @throws ProviderError 504 if it does not
 */
export async function callInTime<Result>(
  timeoutMs: number,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      controller.abort();
      // A provider that heeds the signal knows better whether it sent something.
      timer = setTimeout(() => reject(timedOut()), LATE_MS);
    }, timeoutMs);
  });
  try {
    return await Promise.race([call(controller.signal), deadline]);
  } catch (error) {
    throw controller.signal.aborted && !(error instanceof ProviderError) ? timedOut() : error;
  } finally {
    clearTimeout(timer);
  }
}
