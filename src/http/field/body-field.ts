import { BodyError } from '../body-error.ts';
import { boundaryOf, isEncoded, isForm, isJson, isUtf8, parseMediaType } from '../parse/media-type.ts';
import { type FieldReader, Found } from './field-value.ts';
import { FormField } from './form.ts';
import { JsonField } from './json.ts';
import { MultipartField } from './multipart.ts';

export type { FieldReader };

export interface BodyFieldOptions {
  /** Of the property or field. */
  readonly name: string;
  /** The header as it came. A request that has it twice must be refused before. */
  readonly contentType: string | undefined;
  /** The header as it came. */
  readonly contentEncoding?: string | undefined;
  /**
   * Bound of the value, in bytes of UTF-8.
   * @default 65_536
   */
  readonly maxValueBytes?: number | undefined;
}

/**
 * Reads one field that decides something, such as the account: a property of a JSON object, a field of a form, or a part of a multipart form.
 * It must be there once, as text, and not be empty. Whoever reads the same body later must find the same value: what parsers read in more
 * than one way is refused.
 *
 * @throws BodyError (422), at once where the type says that the field cannot be read
 */
export function createBodyField(options: BodyFieldOptions): FieldReader {
  const { name, contentType, contentEncoding, maxValueBytes = 65_536 } = options;
  const found = new Found(name, maxValueBytes);
  if (isEncoded(contentEncoding)) {
    throw found.error('content_encoded', 'cannot be read: send the body without a content encoding');
  }
  const mediaType = contentType === undefined ? undefined : parseMediaType(contentType);
  if (mediaType !== undefined && isUtf8(mediaType)) {
    if (isJson(mediaType)) return new JsonField(found);
    if (isForm(mediaType)) return new FormField(found);
    if (mediaType.essence === 'multipart/form-data') return new MultipartField(boundaryOf(mediaType), found);
  }
  throw new BodyError(
    422,
    'unsupported_type',
    `The field ${name} must stand in a body of application/json, application/x-www-form-urlencoded or multipart/form-data, in UTF-8.`,
  );
}
