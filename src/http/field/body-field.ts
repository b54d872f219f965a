import { boundaryOf, isEncoded, isForm, isJson, isUtf8, parseMediaType } from '../parse/media-type.ts';
import { type FieldReader, FieldValue } from './field-value.ts';
import { FormField } from './form.ts';
import { JsonField } from './json.ts';
import { MultipartField } from './multipart.ts';

export interface BodyFieldOptions {
  /** Name of the property or field. */
  readonly name: string;
  /** The header's value as received. The caller must refuse a request with two such headers. */
  readonly contentType: string | undefined;
  /** The header's value as received. */
  readonly contentEncoding?: string | undefined;
  /**
   * Maximum length of the value, in bytes of UTF-8.
   * @default 65_536
   */
  readonly maxValueBytes?: number | undefined;
}

/**
 * Reads one field that a decision depends on, such as the account: a property of a JSON object, a field of a form, or a
 * part of a multipart form. The field must be given once, as text that is not empty. The server that reads the same
 * body later must find the same value, so everything that parsers read in more than one way is refused.
 *
 * @throws BodyError (422), immediately if the field cannot be read from a body of this type
 */
export function createBodyField(options: BodyFieldOptions): FieldReader {
  const { name, contentType, contentEncoding, maxValueBytes = 65_536 } = options;
  const field = new FieldValue(name, maxValueBytes);
  if (isEncoded(contentEncoding)) {
    throw field.error('content_encoded', 'cannot be read: send the body without a content encoding');
  }
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  if (mediaType !== undefined && isUtf8(mediaType)) {
    if (isJson(mediaType)) return new JsonField(field);
    if (isForm(mediaType)) return new FormField(field);
    if (mediaType.essence === 'multipart/form-data') return new MultipartField(boundaryOf(mediaType), field);
  }
  const expected = 'application/json, application/x-www-form-urlencoded or multipart/form-data, in UTF-8';
  throw field.error('unsupported_type', `cannot be read: send the body as ${expected}`);
}

/** Reads a field of a query string by the rules of a form. Pass it the query without its question mark. */
export function createQueryField(name: string, maxValueBytes: number): FieldReader {
  return new FormField(new FieldValue(name, maxValueBytes, 'query'));
}
