/** The function that Node's streams call when a write finished. */
export type Callback = (error?: Error | null) => void;

/** Whether a value can be written to a response. */
export function isChunk(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array;
}

/** Splits the arguments behind a chunk into encoding and callback. The encoding may be left out. */
export function splitArguments([encoding, callback]: readonly unknown[]): [unknown, Callback | undefined] {
  return typeof encoding === 'function'
    ? [undefined, encoding as Callback]
    : [encoding, callback as Callback | undefined];
}

/** Node's error for the same mistake. */
export function streamError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
