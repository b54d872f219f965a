import type { FastifyReply } from 'fastify';
import type { Reply } from '../http/problem.ts';
import { fieldsOf } from './node-bridge.ts';

/** By way of the reply, so that hooks see it. As bytes, which Fastify does not touch. */
export function answer(reply: FastifyReply, answered: Reply): void {
  const { status, body } = answered;
  reply.code(status).headers(fieldsOf(answered, reply.request.method));
  if (body.length === 0) reply.send();
  else reply.send(Buffer.from(body as Uint8Array));
}
