/** Source of a regular expression for a token of RFC 9110, section 5.6.2. */
export const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

/**
 * The consecutive matches of `parameter` from `start` to the end of `text`; undefined if any text between or after them
 * does not match.
 * @param parameter a sticky pattern that never matches the empty string
 */
export function matchParameters(parameter: RegExp, text: string, start: number): RegExpExecArray[] | undefined {
  const matches: RegExpExecArray[] = [];
  parameter.lastIndex = start;
  while (parameter.lastIndex < text.length) {
    const match = parameter.exec(text);
    if (match === null) return undefined;
    matches.push(match);
  }
  return matches;
}
