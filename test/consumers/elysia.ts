// Elysia, without any other framework.
import { Elysia } from 'elysia';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { type ElysiaRequest, headgate, idempotentRequest, routeOf } from 'headgate/elysia';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

const gate = createGate<ElysiaRequest>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: ({ request }) => request.headers.get('x-account') ?? undefined,
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (given) => idempotentRequest(given, { scope: 'app_1' }),
});
// The types of the app's routes stay the same behind the gate.
const app = new Elysia()
  .get('/chats/:id', ({ params }) => params.id)
  .use(headgate(gate))
  .use(headgate({ perAddress: ['100/1m'] }));
export type Paths = keyof (typeof app)['~Routes'];
export const path: Paths = 'chats';
// @ts-expect-error a path without a route
export const wrong: Paths = 'emails';
