import { OptionError } from '../../base/errors.ts';
import { checkOptions } from '../../base/options.ts';
import { inSlices } from '../in-slices.ts';
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
import { type BodyFingerprint, type BodyFingerprinter, BytesFingerprinter } from './body-fingerprint.ts';
import { FormFingerprinter } from './form.ts';
import { encodeFingerprint, type Fingerprint } from './format.ts';
import { JsonFingerprinter } from './json.ts';
import { MultipartFingerprinter } from './multipart.ts';

export type { Fingerprint };

/** Everything of a request that is known before its body. */
export interface RequestHead {
  /** As received: `POST`. */
  readonly method: string;
  /** As received, not decoded. */
  readonly path: string;
  /** As received, without the question mark; undefined if there is no question mark. */
  readonly query?: string | undefined;
  /** The header's value as received. The caller must refuse a request with two such headers. */
  readonly contentType?: string | undefined;
  /** The header's value as received. An encoded body is compared by its bytes. */
  readonly contentEncoding?: string | undefined;
  /**
   * Header fields that are part of the comparison, such as `authorization`: names and values; undefined for a field that
   * is absent. They count like the account, and only with a `secret`: a plain digest could be used to guess a password.
   */
  readonly compares?: readonly ComparedField[] | undefined;
}

/** The name of a header field in lower case, and its value. */
export type ComparedField = readonly [name: string, value: string | undefined];

/** A whole request. */
export interface FingerprintRequest extends RequestHead {
  /** The connected account that the request is for. */
  readonly account?: string | undefined;
  /** The bytes as received, in chunks of any length. It is read to the end. */
  readonly body?: AsyncIterable<Uint8Array> | undefined;
}

/** Options of {@link fingerprint}. */
export interface FingerprintOptions {
  /**
   * Key of an HMAC-SHA-256; must not be empty. Without it, fingerprints are plain SHA-256. A reader of the store can
   * then test guesses of a whole request, and of its single fields by 24 bits each.
   */
  readonly secret?: string | Uint8Array | undefined;
}

/** Makes the fingerprint of a request while its body arrives. */
export interface Fingerprinter {
  /**
   * Reads the next chunk of the body. The chunk may be reused afterwards.
   * @throws BodyError (422) if the body is malformed or exceeds a limit
   */
  write(bytes: Uint8Array): void;
  /** Ends the body. Call it once. Throws as `write` does. */
  end(): void;
  /** Returns the fingerprint; call it after `end()`. The account is passed here because it may come from the body. */
  fingerprint(account?: string): Fingerprint;
}

/**
 * Makes the fingerprint of a request (I3). The `value` of two requests is equal if and only if they are the same
 * request. It depends on the method, the path, the query, the account, the media type with its parameters (without the
 * boundary of a multipart body), and the body. The body is read once, in constant memory.
 *
 * @throws BodyError (422) if a multipart body is malformed, contains more than 1,000 parts, or more than 16 KiB of
 * headers in one part, and if JSON is nested more than 64 levels deep
 * @throws OptionError if `secret` is empty, or missing although fields are compared
 * @example
 * const contentType = 'application/json';
 * const { value } = await fingerprint({ method: 'POST', path: '/emails', account: 'acc_1', contentType, body });
 */
export async function fingerprint(request: FingerprintRequest, options: FingerprintOptions = {}): Promise<Fingerprint> {
  const fingerprinter = createFingerprinter(request, options);
  if (request.body !== undefined) await inSlices(request.body, (slice) => fingerprinter.write(slice));
  fingerprinter.end();
  return fingerprinter.fingerprint(request.account);
}

/**
 * As {@link fingerprint}, for a body that the caller reads.
 * @throws OptionError if `secret` is empty, or missing although fields are compared
 */
export function createFingerprinter(head: RequestHead, options: FingerprintOptions = {}): Fingerprinter {
  checkOptions(options, ['secret'], 'options');
  const { secret } = options;
  if (secret !== undefined && !(secret?.length > 0))
    throw new OptionError('secret', '', 'must be text or bytes, not empty', 'another value');
  const { method, path, query, contentType, contentEncoding, compares = [] } = head;
  if (compares.length > 0 && secret === undefined)
    throw new OptionError('secret', secret, 'must be given if fields are compared, so that no reader can guess them');
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  // An empty body cannot be malformed, whatever its type, so the parser is chosen with the first byte.
  let bodyFingerprinter: BodyFingerprinter = new BytesFingerprinter();
  let isEmpty = true;
  let body: BodyFingerprint | undefined;
  return {
    write(bytes) {
      if (bytes.length === 0) return;
      if (isEmpty) bodyFingerprinter = createBodyFingerprinter(mediaType, contentEncoding);
      isEmpty = false;
      bodyFingerprinter.write(bytes);
    },
    end() {
      body = bodyFingerprinter.end();
    },
    fingerprint(account) {
      if (body === undefined) throw new Error('fingerprint() was called before end()');
      const type = mediaType === undefined ? contentType : canonicalType(mediaType);
      return encodeFingerprint({ method, path, query, account, compares, type, contentEncoding, body }, secret);
    },
  };
}

function createBodyFingerprinter(
  mediaType: MediaType | undefined,
  contentEncoding: string | undefined,
): BodyFingerprinter {
  if (mediaType === undefined || isEncoded(contentEncoding)) return new BytesFingerprinter();
  if (isMultipart(mediaType))
    return new MultipartFingerprinter(boundaryOf(mediaType), mediaType.essence === 'multipart/form-data');
  // In another charset, the same bytes are different characters.
  if (!isUtf8(mediaType)) return new BytesFingerprinter();
  if (isJson(mediaType)) return new JsonFingerprinter();
  return isForm(mediaType) ? new FormFingerprinter() : new BytesFingerprinter();
}

function canonicalType(mediaType: MediaType): string {
  const counts = ({ name }: { readonly name: string }): boolean => !isMultipart(mediaType) || name !== 'boundary';
  const parameters = mediaType.parameters.filter(counts).map(({ name, raw }) => `;${name}=${raw}`);
  return mediaType.essence + parameters.join('');
}
