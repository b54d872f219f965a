// Koa, without any other framework.
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { headgate, idempotentRequest, passageOf, readAhead, routeOf } from 'headgate/koa';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import Koa from 'koa';

const gate = createGate<Koa.Context>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (context) => context.get('x-account'),
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (context) => idempotentRequest(context, { scope: 'app_1' }),
});
new Koa()
  .use(readAhead())
  .use(headgate({ perAddress: ['100/1m'], trustedProxies: ['loopback'] }))
  .use(headgate(gate, { route: 'every route' }))
  .use((context) => {
    const accepted: boolean | undefined = passageOf(context)?.decision?.accepted;
    context.body = String(accepted);
  });
