/**
 * Finds the requests in the bytes of a connection. Bodies are skipped; they need a content-length.
 * @param onRequest called with the head of each request, when its last byte has come
 * @returns a function that takes the next bytes
 */
export function createRequestReader(onRequest) {
  let head = '';
  let left = 0;
  return (data) => {
    let at = 0;
    while (at < data.length) {
      if (left === 0) {
        // A head and its end may come in pieces.
        head += data.toString('latin1', at);
        const end = head.indexOf('\r\n\r\n');
        if (end === -1) return;
        at = data.length - (head.length - end - 4);
        left = Number(/\r\ncontent-length: (\d+)/i.exec(head.slice(0, end))?.[1] ?? 0);
        head = head.slice(0, end);
      }
      const taken = Math.min(left, data.length - at);
      left -= taken;
      at += taken;
      if (left > 0) return;
      const whole = head;
      head = '';
      onRequest(whole);
    }
  };
}
