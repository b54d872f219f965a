import { createGate, createIdempotency, createLimiter } from 'headgate';
import { idempotentRequest } from 'headgate/fetch';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

/** A gate for the arguments of actions and loaders. */
export const gate = createGate({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1h'] } }),
  account: ({ request }) => request.headers.get('x-account') ?? undefined,
  route: () => undefined, // each route sets its own name
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: ({ request }) => idempotentRequest(request, { scope: 'app_1' }),
});
