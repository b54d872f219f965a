import type { Readable } from 'node:stream';
import { createFingerprinter, type Fingerprint, type FingerprintOptions, type RequestHead } from 'headgate/http';
import { createBodyField } from 'headgate/internal';
import type { MaybePromise } from 'headgate/stores';
import { type SpooledBody, type SpoolOptions, spoolBody } from './spool.ts';

/** Options of {@link readBody}. */
export interface ReadBodyOptions extends Omit<SpoolOptions, 'observe'> {
  readonly head: RequestHead;
  /** Name of a body field to find; none by default. */
  readonly field?: string | undefined;
  /** Called just before the body is read, once the head is known to be acceptable. */
  readonly onRead?: (() => void) | undefined;
  /** How to make the fingerprint; none is made by default. */
  readonly fingerprint?: FingerprintOptions | undefined;
  /** Runs each piece of work on the body, at once or later; at once by default. */
  readonly run?: (<Result>(work: () => Result) => MaybePromise<Result>) | undefined;
}

/** A body that was read. The caller must dispose of `body` in the end. */
export interface ReadBody {
  readonly body: SpooledBody;
  /** Value of the field, if one was asked for. */
  readonly field: string | undefined;
  /**
   * Fingerprint of the whole request, if one was asked for. It takes the account here, because the account may be a
   * field of the body.
   */
  fingerprint(account?: string): Fingerprint | undefined;
}

/**
 * Reads a request body in one pass that stores it, makes its fingerprint and finds a field in it. If any of this fails,
 * everything stored is freed, and the source is left paused, so that the request can still be answered.
 *
 * @throws BodyError with the status for the answer: 400, 408, 413, 422, 500, 503
 * @example
 * const { body, field, fingerprint } = await readBody(request, { head, maxBytes: 26_214_400, field: 'account_id', fingerprint: {} });
 */
export async function readBody(source: Readable, options: ReadBodyOptions): Promise<ReadBody> {
  const { head, field: name, fingerprint, onRead, run = runAtOnce, ...spooling } = options;
  const { contentType, contentEncoding } = head;
  const field = name === undefined ? undefined : createBodyField({ name, contentType, contentEncoding });
  const fingerprinter = fingerprint === undefined ? undefined : createFingerprinter(head, fingerprint);
  onRead?.();
  const body = await spoolBody(source, {
    observe: (chunk) =>
      run((): undefined => {
        field?.write(chunk);
        fingerprinter?.write(chunk);
      }),
    ...spooling,
  });
  try {
    const value = await run(() => {
      const found = field?.end();
      fingerprinter?.end();
      return found;
    });
    return { body, field: value, fingerprint: (account) => fingerprinter?.fingerprint(account) };
  } catch (error) {
    await body.dispose();
    throw error;
  }
}

function runAtOnce<Result>(work: () => Result): Result {
  return work();
}
