/** Whether `fetch` can send it again: it is not used up by being sent. */
export function isReplayable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string') return true;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return true;
  return body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams;
}
