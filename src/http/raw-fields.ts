/** Header fields as names and values in one flat list, in the order of the message, as in Node's `rawHeaders`. */
export type RawFields = readonly string[];

/**
 * Calls `visit` for every field. Node's `headers` joins most fields that are given twice and drops others, so a rule
 * about the message as it was sent must read this list.
 */
export function forEachField(raw: RawFields, visit: (name: string, value: string, lowerName: string) => void): void {
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] as string;
    visit(name, raw[i + 1] as string, name.toLowerCase());
  }
}

/**
 * Every value of a field, in order.
 * @param name in lower case
 */
export function fieldValues(raw: RawFields, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const other = raw[i] as string;
    // Most names differ in their length, and a name in lower case is a new string.
    if (other.length === name.length && other.toLowerCase() === name) values.push(raw[i + 1] as string);
  }
  return values;
}
