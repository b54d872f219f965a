/** An object of a file whose shape is not known to be right. */
export type Raw = Readonly<Record<string, unknown>>;

/** The value where it is an object, else an empty one. */
export function record(value: unknown): Raw {
  return isObject(value) ? (value as Raw) : {};
}

/** The value where it is an array, else an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** An object, and no array. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
