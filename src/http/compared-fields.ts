import type { ComparedField } from './fingerprint/fingerprint.ts';
import { TOKEN } from './parse/parameters.ts';
import { fieldValues, type RawFields } from './raw-fields.ts';

/** Most fields of one request that are compared. */
export const MAX_COMPARED = 16;

const NAME = /* @__PURE__ */ new RegExp(`^${TOKEN}$`);

export function isFieldName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

/**
 * The fields of a request that are part of its fingerprint, in an order that does not depend on how they are listed.
 * @param read returns the value of a field by its name in lower case
 */
export function comparedFields(
  names: readonly string[],
  read: (name: string) => string | undefined,
): readonly ComparedField[] {
  const distinct = new Set(names.map((name) => name.toLowerCase()));
  return [...distinct].sort().map((name) => [name, read(name)]);
}

/** The value of a field; of a field that is given more than once, all values, joined as `Headers` do. */
export function joinedField(raw: RawFields, name: string): string | undefined {
  const values = fieldValues(raw, name);
  return values.length === 0 ? undefined : values.join(name === 'cookie' ? '; ' : ', ');
}
