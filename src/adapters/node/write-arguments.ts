/** What Node's streams call when a write is over. */
export type Callback = (error?: Error | null) => void;

/** What may be written. */
export function isChunk(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array;
}

/** Arguments behind a chunk: `encoding, callback`, of which the first may be left out. */
export function split([encoding, callback]: readonly unknown[]): [unknown, Callback | undefined] {
  return typeof encoding === 'function'
    ? [undefined, encoding as Callback]
    : [encoding, callback as Callback | undefined];
}

/** What Node says in the same case. */
export function fault(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
