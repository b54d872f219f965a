import { nextTurn } from './platform.ts';

/** Bytes that are worked on in one turn of the event loop: a few milliseconds for the worst body. */
const SLICE_BYTES = 65_536;

/**
 * Passes a body on, and lets other work of the process go on between two slices of it. A body of one slice is passed on
 * without a pause.
 */
export async function inSlices(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  take: (slice: Uint8Array) => void,
): Promise<void> {
  let bytes = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      const slice = chunk.subarray(at, at + SLICE_BYTES);
      bytes += slice.length;
      if (bytes > SLICE_BYTES) {
        await nextTurn();
        bytes = slice.length;
      }
      take(slice);
    }
  }
}
