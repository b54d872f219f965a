// h3, without any other framework.
import { H3, type H3Event } from 'h3';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { headgate, idempotentRequest, passageOf, routeOf } from 'headgate/h3';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

const gate = createGate<H3Event>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (event) => event.req.headers.get('x-account') ?? undefined,
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (event) => idempotentRequest(event, { scope: 'app_1' }),
});
new H3()
  .use(headgate({ perAddress: ['100/1m'] }))
  .use(headgate(gate))
  .get('/', (event) => String(passageOf(event)?.decision));

// @ts-expect-error an event of h3 does not have this property
createGate<H3Event>({ account: (event) => event.nothing });
