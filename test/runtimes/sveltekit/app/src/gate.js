import { createGate, createIdempotency, createLimiter } from 'headgate';
import { idempotentRequest } from 'headgate/fetch';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

/** A gate for SvelteKit's events. */
export const gate = createGate({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1h'] } }),
  account: ({ request }) => request.headers.get('x-account') ?? undefined,
  route: ({ request, route }) => `${request.method} ${route.id}`,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: ({ request }) => idempotentRequest(request, { scope: 'app_1' }),
});
