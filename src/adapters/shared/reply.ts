import type { Reply } from '../../http/problem.ts';

/** The header fields of an answer of the gate's own, for a request with this method. */
export function replyFields(headers: Reply['headers'], method: string | undefined): Reply['headers'] {
  const { 'content-length': length, ...others } = headers;
  // A stored answer to HEAD is without a body, so the length of a GET's body is not known.
  return method === 'HEAD' && length === '0' ? others : headers;
}
