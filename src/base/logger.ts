import { OptionError } from './errors.ts';
import { isPromise } from './maybe-promise.ts';
import { stackOf } from './thrown.ts';

/**
 * Writes one line of a log: what happened, and the error behind it, or undefined if it is good news. `console.error` is
 * such a function.
 */
export type Logger = (message: string, error: unknown) => void;

/**
 * The logger that an option asks for. It never throws, because a log must not break a request.
 * @throws OptionError
 */
export function createLogger(given: Logger | false | undefined): Logger {
  if (given === false) return () => {};
  if (given !== undefined && typeof given !== 'function')
    throw new OptionError('logger', given, 'must be false or a function of a message and an error');
  const write = given ?? writeToConsole;
  return (message, error) => {
    try {
      const result: unknown = write(message, error);
      // An asynchronous logger rejects. An unhandled rejection would end the process.
      if (isPromise(result)) result.then(undefined, () => {});
    } catch {
      // There is no other place to report it to.
    }
  };
}

/** Writes the stack only: the properties of an error may be very long. */
function writeToConsole(message: string, error: unknown): void {
  const text = error === undefined ? message : `${message}: ${stackOf(error)}`;
  // biome-ignore lint/suspicious/noConsole: the default
  console.error('%s', text);
}
