// Nest on Fastify. What is the same on Express is in nest.ts.
import type { FastifyRequest } from 'fastify';
import { createGate, createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { HeadgateModule, type NestRequest, routeOf } from 'headgate/nest';

export const request = (of: FastifyRequest): NestRequest => of;

const gate = createGate<NestRequest>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  // A Fastify request and Node's own, both by one resolver.
  account: (given) => ('raw' in given ? given.raw.headers : given.headers)['x-account']?.toString(),
  route: routeOf,
});
export const module = HeadgateModule.forRoot(gate);
export const address = (of: NestRequest): string => (of as FastifyRequest).ip;
