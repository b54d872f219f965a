/** The readable parts of a thrown value. */
export interface ThrownText {
  /** The name of an error; the type of any other value. */
  readonly name: string;
  readonly message: string;
}

const UNREADABLE = 'a value that has no text';

/** Reads a thrown value, which can be anything: no value makes this throw. */
export function describeThrown(thrown: unknown): ThrownText {
  try {
    if (thrown instanceof Error) return { name: textOf(thrown.name), message: textOf(thrown.message) };
    return { name: typeof thrown, message: textOf(thrown) };
  } catch {
    return { name: typeof thrown, message: UNREADABLE };
  }
}

/** The stack of an error, or a short form of any other value. Never throws. */
export function stackOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error && typeof thrown.stack === 'string') return thrown.stack;
  } catch {
    // Reading the error failed.
  }
  return describeThrown(thrown).message;
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return UNREADABLE;
  }
}
