/** Equal as JSON, with undefined told from absence: needs no runner's assertions. */
export function equal(actual: unknown, expected: unknown): void {
  const show = (value: unknown): string =>
    JSON.stringify(value, (_, part) => (part === undefined ? 'undefined' : part)) ?? 'undefined';
  if (show(actual) !== show(expected)) throw new Error(`the store says ${show(actual)}, the model ${show(expected)}`);
}
