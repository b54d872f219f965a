import { setImmediate as turn } from 'node:timers/promises';

/** Other requests are served after so many bytes. */
const SLICE = 65_536;
const [LF, CR] = [0x0a, 0x0d];

/** The bytes of a message, in which every line feed follows a carriage return: mail servers want no other line breaks. */
export async function* withLineBreaks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let before = 0;
  let size = 0;
  for await (const chunk of source)
    for (let at = 0; at < chunk.length; at += SLICE) {
      const slice = chunk.subarray(at, at + SLICE);
      yield completed(slice, before);
      before = slice[slice.length - 1] ?? before;
      size += slice.length;
      if (size < SLICE) continue;
      size = 0;
      await turn();
    }
}

/** @param before the byte before the slice */
function completed(slice: Uint8Array, before: number): Uint8Array {
  let at = slice.indexOf(LF);
  if (at === -1) return slice;
  const whole = Buffer.allocUnsafe(slice.length * 2);
  let length = 0;
  let start = 0;
  for (; at !== -1; at = slice.indexOf(LF, at + 1)) {
    if ((at === 0 ? before : slice[at - 1]) === CR) continue;
    whole.set(slice.subarray(start, at), length);
    length += at - start;
    whole[length++] = CR;
    start = at;
  }
  whole.set(slice.subarray(start), length);
  return whole.subarray(0, length + slice.length - start);
}
