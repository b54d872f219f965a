import { OptionError } from './errors.ts';

/** Whether a value is an object as a literal makes one; a promise, a map or a list in the place of one would silently hold nothing. */
export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm has another Object.prototype, whose own prototype is null all the same.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Reads what an object holds by name. A map, since accounts and routes may be called `__proto__`.
 * @param place how errors call the object
 * @throws OptionError
 */
export function readByName<T, V>(
  values: Readonly<Record<string, T>> | undefined,
  place: string,
  read: (value: T, place: string) => V,
): Map<string, V> {
  if (values !== undefined && !isPlainObject(values)) throw new OptionError(place, values, 'must be a plain object');
  return new Map(Object.entries(values ?? {}).map(([name, value]) => [name, read(value, placeIn(place, name))]));
}

/** How errors call what an object holds under a name that may be any string. */
export function placeIn(place: string, name: string): string {
  return `${place}[${JSON.stringify(name)}]`;
}

/**
 * Refuses what is no plain object, and names that are no option: a misspelt one is a fault, never a silent nothing.
 * @param place how errors call the object
 * @throws OptionError
 */
export function checkOptions(options: object, known: readonly string[], place: string): void {
  if (!isPlainObject(options)) throw new OptionError(place, options, `must be a plain object of ${known.join(', ')}`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const reason = `is no option; known are ${known.join(', ')}`;
  throw new OptionError(`${place}.${unknown}`, Reflect.get(options, unknown), reason);
}
