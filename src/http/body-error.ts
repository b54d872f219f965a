/** What is wrong with a body. The values are stable across versions. */
export type BodyErrorReason =
  // 400
  | 'aborted'
  | 'too_fragmented'
  // 408
  | 'stalled'
  // 413
  | 'too_large'
  // 422: something that a body may not contain
  | 'malformed_json'
  | 'too_deep'
  | 'malformed_multipart'
  | 'too_many_parts'
  | 'part_headers_too_large'
  | 'malformed_form'
  // 422: a field that is required
  | 'unsupported_type'
  | 'content_encoded'
  | 'field_missing'
  | 'field_repeated'
  | 'field_empty'
  | 'field_not_text'
  | 'field_too_long'
  | 'field_ambiguous'
  // 500
  | 'already_read'
  // 503
  | 'no_storage';

/** HTTP statuses with which a body can be refused. */
export type BodyErrorStatus = 400 | 408 | 413 | 422 | 500 | 503;

const BRAND = Symbol.for('headgate.body-error');

/** A request's body was refused. The message may be shown to the client: it never contains the content of the body. */
export class BodyError extends Error {
  // Set by the constructor: a field with a computed name keeps bundlers from dropping the class.
  /** @internal */
  declare readonly [BRAND]: true;

  constructor(
    /** HTTP status of the response. */
    readonly status: BodyErrorStatus,
    readonly reason: BodyErrorReason,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this[BRAND] = true;
    this.name = 'BodyError';
  }
}

/** Whether `value` is a {@link BodyError} of any installed copy of the package; with `reason`, of that reason. */
export function isBodyError(value: unknown, reason?: BodyErrorReason): value is BodyError {
  return (
    typeof value === 'object' &&
    value !== null &&
    BRAND in value &&
    (reason === undefined || (value as BodyError).reason === reason)
  );
}
