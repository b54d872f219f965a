/** After so long without an error, the next one begins another outage. A client that connects again fails every second. */
const QUIET_MS = 10_000;
const NEW_EVERY_MS = 1_000;
const KNOWN_EVERY_MS = 60_000;
/** Most messages of one outage that are written with their stack. */
const MAX_MESSAGES = 10;
/** Longest message in a short line, in characters. */
const MAX_LENGTH = 160;

/** The fields of a line: the first error with its stack, or how often known errors happened since the line before. */
export type ErrorFields = { readonly err: unknown } | { readonly cause: string; readonly errors: number };

/**
 * Writes each error of an outage once in full, at most one per second, and then one short line per minute. A client that
 * connects again and again would fill the log with one stack.
 * @param now milliseconds
 */
export function createErrorLog(
  write: (fields: ErrorFields) => void,
  now = () => performance.now(),
): (error: unknown) => void {
  const messages = new Set<string>();
  let lastMs = Number.NEGATIVE_INFINITY;
  let writtenMs = Number.NEGATIVE_INFINITY;
  let errors = 0;
  return (error) => {
    const ms = now();
    if (ms - lastMs >= QUIET_MS) {
      messages.clear();
      errors = 0;
    }
    lastMs = ms;
    errors++;
    const message = error instanceof Error ? error.message : String(error);
    const isNew = !messages.has(message) && messages.size < MAX_MESSAGES;
    if (ms - writtenMs < (isNew ? NEW_EVERY_MS : KNOWN_EVERY_MS)) return;
    if (isNew) messages.add(message);
    write(isNew ? { err: error } : { cause: message.slice(0, MAX_LENGTH), errors });
    writtenMs = ms;
    errors = 0;
  };
}
