/** Ends the process as one that was called wrongly: with 2, since 1 says that it found something. */
export function refuse(message) {
  console.error(message);
  process.exit(2);
}

/**
 * A number from the command line, which else refuses.
 * @param values as `parseArgs` gives them
 * @param matchesContentLength whether it has to be a whole number from 1 on; any above 0 will do else
 * @returns undefined where the option was not given
 */
export function numberOption(values, name, matchesContentLength = false) {
  const text = values[name];
  if (text === undefined) return undefined;
  const number = Number(text);
  const fits = matchesContentLength ? Number.isSafeInteger(number) : Number.isFinite(number);
  if (!fits || number <= 0)
    refuse(`--${name} ${text}: must be ${matchesContentLength ? 'a whole number from 1 on' : 'a number above 0'}`);
  return number;
}
