import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Reply } from '../../http/problem.ts';
import { fieldsOf } from './bridge.ts';

/** By way of the reply, so that hooks see it. As bytes, which Fastify does not touch, or as a stream, where it would add a type to them (I4). */
export function answer(reply: FastifyReply, answered: Reply): void {
  const { status, body, headers } = answered;
  reply.code(status).headers(fieldsOf(answered, reply.request.method));
  if (body.length === 0) return void reply.send();
  const bytes = Buffer.from(body as Uint8Array);
  reply.send(headers['content-type'] === undefined ? Readable.from(bytes) : bytes);
}
