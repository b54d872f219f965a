import type { Reply } from '../../http/problem.ts';
import { replyFields } from '../shared/reply.ts';

/** What `Response` accepts as a body. */
export type ResponseBody = ConstructorParameters<typeof Response>[0];

/** An answer of the gate's own to a request with this method. */
export function createResponse(reply: Reply, method: string): Response {
  const { status, headers, body } = responseParts(reply, method);
  const all = new Headers();
  for (const name of Object.keys(headers)) {
    for (const value of [headers[name] ?? []].flat()) all.append(name, value);
  }
  return new Response(body as ResponseBody, { status, headers: all });
}

/** A reply in the form that `Response` accepts: the body is null if the response must be without one. */
export function responseParts(
  { status, headers, body }: Reply,
  method: string,
): Omit<Reply, 'body'> & { readonly body: Reply['body'] | null } {
  // Some servers add a text type to a body that is empty but not null.
  const isBodyless = body.length === 0 || method === 'HEAD' || [101, 204, 205, 304].includes(status);
  return { status, headers: replyFields(headers, method), body: isBodyless ? null : body };
}

/** Checks the shape: a runtime, a polyfill or a test may use another class. */
export function isResponse(value: unknown): value is Response {
  return typeof value === 'object' && value !== null && 'status' in value && 'headers' in value && 'body' in value;
}
