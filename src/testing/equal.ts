/**
 * Equal as JSON, with undefined told from absence: needs no runner's assertions.
 * @param subject who is judged, and by whom
 */
export function equal(actual: unknown, expected: unknown, [judged, judge] = ['the store', 'the model']): void {
  const show = (value: unknown): string =>
    JSON.stringify(value, (_, part) => (part === undefined ? 'undefined' : part)) ?? 'undefined';
  if (show(actual) !== show(expected)) throw new Error(`${judged} says ${show(actual)}, ${judge} ${show(expected)}`);
}
