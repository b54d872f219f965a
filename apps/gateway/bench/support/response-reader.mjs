const END_OF_HEAD = '\r\n\r\n';

/**
 * Finds the responses in the bytes of a connection. Bodies are skipped, so that large ones cost the load nothing.
 * @param onResponse called with the status and the head of each response, when its last byte has come
 * @returns a function that takes the next bytes
 */
export function createResponseReader(onResponse) {
  let rest = Buffer.alloc(0);
  let head;
  /** Bytes of the body that are still to come. */
  let left = 0;
  return (data) => {
    let bytes = head === undefined && rest.length > 0 ? Buffer.concat([rest, data]) : data;
    for (;;) {
      if (head === undefined) {
        const end = bytes.indexOf(END_OF_HEAD);
        if (end === -1) {
          rest = bytes;
          return;
        }
        head = bytes.toString('latin1', 0, end);
        left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
        bytes = bytes.subarray(end + END_OF_HEAD.length);
      }
      const taken = Math.min(left, bytes.length);
      left -= taken;
      bytes = bytes.subarray(taken);
      if (left > 0) return;
      const whole = head;
      head = undefined;
      rest = bytes;
      onResponse(Number(whole.slice(9, 12)), whole);
    }
  };
}
