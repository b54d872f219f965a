// Fastify, without any other framework.
import fastify, { type FastifyRequest } from 'fastify';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { headgate, idempotentRequest, passageOf, routeOf } from 'headgate/fastify';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

const gate = createGate<FastifyRequest>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (request) => request.headers['x-account']?.toString(),
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});

const app = fastify();
app.register(headgate({ perAddress: ['100/1m'], address: (request) => request.ip }));
app.register(headgate(gate, { hook: 'preHandler' }));
app.get('/chats/:id', { config: { headgate: { cost: 2 } } }, async (_request, reply) => {
  const accepted: boolean | undefined = passageOf(reply)?.decision?.accepted;
  return `chat ${accepted}`;
});
// @ts-expect-error a route's options are checked
app.get('/emails', { config: { headgate: { cost: 'two' } } }, async () => 'email');
