import { createGate, createIdempotency, createLimiter } from 'headgate';
import { idempotentRequest } from 'headgate/fetch';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

export const gate = createGate({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1h'] } }),
  account: (request) => request.headers.get('x-account') ?? undefined,
  route: ({ method, nextUrl }) => `${method} ${nextUrl.pathname}`,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});
