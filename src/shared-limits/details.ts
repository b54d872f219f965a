import type { Logger } from '../base/logger.ts';

const MAX_BYTES = 8_192;

/**
 * Reads what a process says about itself. A fault of it must not keep the process from reading the adjustments.
 * @returns a function that returns undefined if there is nothing to say
 */
export function createDetails(describe: (() => string) | undefined, log: Logger): () => string | undefined {
  let isReported = false;
  return () => {
    if (describe === undefined) return undefined;
    try {
      return checked(describe());
    } catch (error) {
      if (!isReported) log('headgate: the option details of the shared limits failed', error);
      isReported = true;
      return undefined;
    }
  };
}

function checked(details: string): string | undefined {
  if (typeof details !== 'string') throw new TypeError('details() must return a text');
  const bytes = new TextEncoder().encode(details).length;
  if (bytes > MAX_BYTES) throw new RangeError(`details() must return at most ${MAX_BYTES} bytes, got ${bytes}`);
  return details === '' ? undefined : details;
}
