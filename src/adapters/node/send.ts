import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { RejectionError } from '../../gate/rejection-error.ts';
import type { Reply } from '../../http/problem.ts';
import { replyFields } from '../shared/reply.ts';

/** Sends an answer of the gate's own, unless something in front answered while the gate waited for its store. */
export function sendReply(response: ServerResponse, reply: Reply): void {
  if (response.headersSent || response.writableEnded) return;
  response.writeHead(reply.status, replyFields(reply.headers, response.req.method)).end(reply.body);
}

/**
 * Puts the fields of an error on the response, so that every error handler sends them.
 * @returns false if something in front answered while the gate waited for its store: then there is nothing to throw
 */
export function prepareRejection(response: ServerResponse | FastifyReply, { headers }: RejectionError): boolean {
  if ('raw' in response) {
    if (!response.sent) response.headers(headers);
    return !response.sent;
  }
  if (response.headersSent || response.writableEnded) return false;
  for (const name of Object.keys(headers)) response.setHeader(name, headers[name] as string);
  return true;
}

/** Like {@link sendReply}, through Fastify, so that the hooks of the application see the answer. */
export function sendFastifyReply(reply: FastifyReply, { status, headers, body }: Reply): void {
  // A time-out, or another hook, may have answered while the gate waited for its store.
  if (reply.sent) return;
  reply.code(status).headers(replyFields(headers, reply.request.method));
  if (body.length === 0) return void reply.send();
  // Fastify does not change bytes. It would add a content type to them if it is missing; it does not for a stream
  // (I4).
  const bytes = Buffer.from(body as Uint8Array);
  reply.send(headers['content-type'] === undefined ? Readable.from(bytes) : bytes);
}
