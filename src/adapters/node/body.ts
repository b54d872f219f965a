import { BodyError } from '../../http/body-error.ts';
import { createBodyField } from '../../http/field/body-field.ts';
import { checkReadBody, type ReadBodyOptions } from '../shared/request-options.ts';
import type { NodeRequest } from './http.ts';
import { readAndPutBack } from './put-back.ts';

export type { ReadBodyOptions };

type Body = readonly Uint8Array[];

/** Between the resolvers that want it: a body can be read and put back once. */
const BODY = Symbol('headgate.body');

type Request = NodeRequest & { [BODY]?: Promise<Body> | undefined };

/** Reads a body, once for all who ask, and puts it back; {@link forgetBody} lets go of it. */
export async function readBody(request: Request, options: ReadBodyOptions): Promise<Body> {
  const { maxBytes, idleMs } = checkReadBody(options);
  request[BODY] ??= gather(request, maxBytes, idleMs);
  const body = await request[BODY];
  // Whoever asked first may have taken more.
  if (body.reduce((size, chunk) => size + chunk.length, 0) > maxBytes) {
    throw new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
  }
  return body;
}

/** No resolver will ask any more. */
export function forgetBody(request: Request): void {
  if (request[BODY] !== undefined) request[BODY] = undefined;
}

/**
 * A gate's `account` that stands in the body: reads it in front of every parser, and leaves it untouched (I13). It must be there once, as a JSON
 * property, a form field or a part of a multipart form, and not be empty. Let through what it throws: of a body that it gave up the rest is gone.
 * @throws BodyError, which the gate answers: 400, 408, 413, 422
 * @example
 * ```ts
 * account: (request) => fieldOfBody(request, 'account_id'),
 * ```
 */
export async function fieldOfBody(request: NodeRequest, name: string, options: ReadBodyOptions = {}): Promise<string> {
  const { 'content-type': contentType, 'content-encoding': contentEncoding } = request.headers;
  const field = createBodyField({ name, contentType, contentEncoding });
  for (const chunk of await readBody(request, options)) field.write(chunk);
  return field.end();
}

async function gather(request: NodeRequest, maxBytes: number, idleMs: number): Promise<Body> {
  const chunks: Uint8Array[] = [];
  await readAndPutBack(request, { maxBytes, idleMs, observe: (chunk) => chunks.push(chunk) });
  return chunks;
}
