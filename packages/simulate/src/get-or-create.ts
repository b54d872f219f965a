/** The value under a key of a map. It is created the first time. */
export function getOrCreate<K extends WeakKey | string | number, V>(
  values: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  create: () => V,
): V {
  let value = values.get(key);
  if (value === undefined) {
    value = create();
    values.set(key, value);
  }
  return value;
}
