import { OptionError } from './errors.ts';

/**
 * Whether a value is an object such as an object literal creates. A promise, a map or an array is refused, because
 * reading options from one would silently find none.
 */
export function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The Object.prototype of another realm is a different object, but that one's prototype is also null.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Reads every property of an object. Returns a map, because accounts and routes can be called `__proto__`.
 * @param place name of the object in error messages
 * @throws OptionError
 */
export function readByName<T, V>(
  values: Readonly<Record<string, T>> | undefined,
  place: string,
  read: (value: T, place: string, name: string) => V,
): Map<string, V> {
  if (values !== undefined && !isPlainObject(values)) throw new OptionError(place, values, 'must be a plain object');
  return new Map(Object.entries(values ?? {}).map(([name, value]) => [name, read(value, placeIn(place, name), name)]));
}

/** Name in error messages of a property whose name is free. */
export function placeIn(place: string, name: string): string {
  return `${place}[${JSON.stringify(name)}]`;
}

/**
 * Checks that `options` is a plain object and names only known options, because a misspelt option would silently do
 * nothing.
 * @param place name of the object in error messages
 * @param advise says where an unknown name belongs, if it is known
 * @throws OptionError
 */
export function checkOptions(
  options: object,
  known: readonly string[],
  place: string,
  advise?: (name: string) => string | undefined,
): void {
  if (!isPlainObject(options)) throw new OptionError(place, options, `must be a plain object${expected(known)}`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const value: unknown = Reflect.get(options, unknown);
  // A misspelt `secret` must not appear in a log.
  const shown = typeof value === 'string' ? 'a string' : undefined;
  const advice = advise?.(unknown);
  const reason = `unknown option${advice === undefined ? '' : `: ${advice}`}${expected(known)}`;
  throw new OptionError(`${place}.${unknown}`, value, reason, shown);
}

function expected(names: readonly string[]): string {
  return names.length === 0 ? '' : ` (expected ${names.join(', ').replace(/, ([^,]*)$/, ' or $1')})`;
}

/** @throws OptionError */
export function checkOneOf(option: string, value: unknown, choices: readonly unknown[]): void {
  if (!choices.includes(value)) throw new OptionError(option, value, `must be one of ${choices.join(', ')}`);
}

/**
 * Checks the options of these names: each is a function, or absent.
 * @throws OptionError
 */
export function checkFunctions<Name extends string>(
  options: { readonly [name in Name]?: unknown },
  names: readonly Name[],
  reason = 'must be a function',
): void {
  for (const name of names) {
    const given = options[name];
    if (given !== undefined && typeof given !== 'function') throw new OptionError(name, given, reason);
  }
}

/**
 * Checks that an option has these methods.
 * @param like the end of the error message, which says what has them
 * @throws OptionError
 */
export function checkMethods(option: string, value: unknown, names: readonly string[], like: string): void {
  const missing = names.find((name) => typeof Object(value)[name] !== 'function');
  if (missing !== undefined) throw new OptionError(option, value, `must have ${missing}()${like}`);
}

/** @throws OptionError */
export function checkInteger(option: string, value: number, least: number, most = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`;
  throw new OptionError(option, value, `must be an integer ${range}`);
}
