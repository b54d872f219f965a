import { OptionError } from '../../core/errors.ts';
import {
  boundaryOf,
  isEncoded,
  isForm,
  isJson,
  isMultipart,
  isUtf8,
  type MediaType,
  parseMediaType,
} from '../parse/media-type.ts';
import type { BodyPrinter } from './body-print.ts';
import { BytesPrinter } from './bytes.ts';
import { FormPrinter } from './form.ts';
import { encodeFingerprint, type Fingerprint } from './format.ts';
import { JsonPrinter } from './json.ts';
import { MultipartPrinter } from './multipart.ts';

export type { Fingerprint };

/** What a request is besides its body. */
export interface RequestHead {
  /** As it came: `POST`. */
  readonly method: string;
  /** As it came, not decoded. */
  readonly path: string;
  /** As it came, without its question mark; undefined where there is no question mark. */
  readonly query?: string | undefined;
  /** The header as it came. A request that has it twice must be refused before. */
  readonly contentType?: string | undefined;
  /** The header as it came: an encoded body is compared by its bytes. */
  readonly contentEncoding?: string | undefined;
}

/** A whole request. */
export interface FingerprintRequest extends RequestHead {
  /** The connected account that the request is for. */
  readonly account?: string | undefined;
  /** The bytes as they came, in any pieces; read to the end. */
  readonly body?: AsyncIterable<Uint8Array> | undefined;
}

/** Options of {@link fingerprint}. */
export interface FingerprintOptions {
  /**
   * Key of an HMAC, not empty. Without it (the default) a fingerprint is made of plain SHA-256: whoever reads the store can test guesses
   * of a request, and, by 24 bits of each, of its single fields.
   */
  readonly secret?: string | Uint8Array | undefined;
}

/** Makes a fingerprint while the body comes in. */
export interface Fingerprinter {
  /** The next piece of the body; read at once, not kept. Throws a `BodyError` (422) where the body is malformed or past a bound. */
  write(bytes: Uint8Array): void;
  /** The body is complete; once. Throws likewise. */
  end(): void;
  /** After `end()`. The account may stand in the body, so that it is known only now. */
  fingerprint(account?: string): Fingerprint;
}

/**
 * The fingerprint of a request (I3): its `value` is equal for two requests iff they are the same. What counts: method, path, query, account, media type
 * with its parameters less a multipart body's boundary, body. Reads the body once, in constant memory.
 *
 * @throws BodyError (422) for a multipart body that is malformed, has more than 1,000 parts, or 16 KiB of headers in one, and for JSON
 * nested more than 64 deep
 * @example
 * const { value } = await fingerprint({ method: 'POST', path: '/api/v1/emails', account: 'acc_1', contentType: 'application/json', body });
 */
export async function fingerprint(request: FingerprintRequest, options: FingerprintOptions = {}): Promise<Fingerprint> {
  const fingerprinter = createFingerprinter(request, options);
  if (request.body !== undefined) for await (const chunk of request.body) fingerprinter.write(chunk);
  fingerprinter.end();
  return fingerprinter.fingerprint(request.account);
}

/** As {@link fingerprint}, for a body that something else reads. */
export function createFingerprinter(head: RequestHead, { secret }: FingerprintOptions = {}): Fingerprinter {
  if (secret !== undefined && secret.length === 0) throw new OptionError('secret', '', 'must not be empty');
  const { method, path, query, contentType, contentEncoding } = head;
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  // A body of no bytes is nothing that could be malformed.
  let printer: BodyPrinter = new BytesPrinter();
  let isEmpty = true;
  let body: ReturnType<BodyPrinter['end']> | undefined;
  return {
    write(bytes) {
      if (bytes.length === 0) return;
      if (isEmpty) printer = createPrinter(mediaType, contentEncoding);
      isEmpty = false;
      printer.write(bytes);
    },
    end() {
      body = printer.end();
    },
    fingerprint(account) {
      if (body === undefined) throw new Error('end() comes before fingerprint()');
      const type = mediaType === undefined ? contentType : canonicalType(mediaType);
      return encodeFingerprint({ method, path, query, account, type, contentEncoding, body }, secret);
    },
  };
}

function createPrinter(mediaType: MediaType | undefined, contentEncoding: string | undefined): BodyPrinter {
  if (mediaType === undefined || isEncoded(contentEncoding)) return new BytesPrinter();
  if (isMultipart(mediaType))
    return new MultipartPrinter(boundaryOf(mediaType), mediaType.essence === 'multipart/form-data');
  // In another charset, the same bytes are other characters.
  if (!isUtf8(mediaType)) return new BytesPrinter();
  if (isJson(mediaType)) return new JsonPrinter();
  return isForm(mediaType) ? new FormPrinter() : new BytesPrinter();
}

function canonicalType(mediaType: MediaType): string {
  const counts = ({ name }: { readonly name: string }): boolean => !isMultipart(mediaType) || name !== 'boundary';
  const parameters = mediaType.parameters.filter(counts).map(({ name, raw }) => `;${name}=${raw}`);
  return mediaType.essence + parameters.join('');
}
