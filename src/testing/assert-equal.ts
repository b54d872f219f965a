/**
 * Compares two values as JSON, but distinguishes undefined from a missing property. It needs no assertions of a test
 * runner.
 * @param sources where the two values come from, for the message
 * @throws Error if they differ
 */
export function assertEqual(actual: unknown, expected: unknown, sources = ['the store', 'the model']): void {
  const show = (value: unknown): string =>
    JSON.stringify(value, (_, part) => (part === undefined ? 'undefined' : part)) ?? 'undefined';
  if (show(actual) === show(expected)) return;
  throw new Error(`${sources[0]} returned ${show(actual)}, ${sources[1]} expects ${show(expected)}`);
}
