/** Ends the process because of a wrong option, with code 2. Code 1 means that the benchmark itself found something. */
export function usageError(message) {
  console.error(message);
  process.exit(2);
}

/**
 * Reads a number from the command line. The process ends if it is not a number above 0.
 * @param values the `values` of `parseArgs`
 * @param isWhole whether it must be a whole number
 * @returns undefined if the option was not given
 */
export function numberOption(values, name, isWhole = false) {
  const text = values[name];
  if (text === undefined) return undefined;
  const number = Number(text);
  const fits = isWhole ? Number.isSafeInteger(number) : Number.isFinite(number);
  if (!fits || number <= 0)
    usageError(`--${name}: must be ${isWhole ? 'a whole number from 1' : 'a number above 0'}, got "${text}"`);
  return number;
}
