import { createBodyField } from '../../http/field/body-field.ts';
import {
  createFingerprinter,
  type Fingerprint,
  type FingerprintOptions,
  type RequestHead,
} from '../../http/fingerprint/fingerprint.ts';
import type { BodySource } from './pump.ts';
import { type SpooledBody, type SpoolOptions, spoolBody } from './spool.ts';

export interface IntakeOptions extends Omit<SpoolOptions, 'observe'> {
  readonly head: RequestHead;
  /** Name of a field of the body that is needed; none by default. */
  readonly field?: string | undefined;
  /** Called just before the body is read: nothing is known against the head then. */
  readonly onRead?: (() => void) | undefined;
  /** How the fingerprint is made; none is by default. */
  readonly fingerprint?: FingerprintOptions | undefined;
}

/** A body that was taken in. Dispose of `body` in the end. */
export interface Intake {
  readonly body: SpooledBody;
  /** Value of the field that was asked for. */
  readonly field: string | undefined;
  /** Of the whole request; undefined where none was asked for. The account may be known only now. */
  fingerprint(account?: string): Fingerprint | undefined;
}

/**
 * Takes a request's body in: in one pass it is stored, its fingerprint is made, and a field is read out of it. Where any of it fails nothing
 * stays behind, and the source is left paused, for the answer.
 *
 * @throws BodyError with the status for the answer: 400, 408, 413, 422, 500, 503
 * @example
 * const { body, field, fingerprint } = await takeIn(request, { head, maxBytes: 26_214_400, field: 'account_id', fingerprint: {} });
 */
export async function takeIn(source: BodySource, options: IntakeOptions): Promise<Intake> {
  const { head, field: name, fingerprint, onRead, ...spooling } = options;
  const { contentType, contentEncoding } = head;
  const field = name === undefined ? undefined : createBodyField({ name, contentType, contentEncoding });
  const fingerprinter = fingerprint === undefined ? undefined : createFingerprinter(head, fingerprint);
  onRead?.();
  const body = await spoolBody(source, {
    ...spooling,
    observe(chunk) {
      field?.write(chunk);
      fingerprinter?.write(chunk);
    },
  });
  try {
    const value = field?.end();
    fingerprinter?.end();
    return { body, field: value, fingerprint: (account) => fingerprinter?.fingerprint(account) };
  } catch (error) {
    await body.dispose();
    throw error;
  }
}
