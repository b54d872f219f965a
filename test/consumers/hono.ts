// The subpath that needs Hono, but neither Node's types nor those of another framework.
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { fieldOfBody, headgate, idempotentRequest, passageOf, routeOf, servedFromCache } from 'headgate/hono';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import { type Context, Hono } from 'hono';

type Application = { Variables: { account: string } };

const gate = createGate<Context<Application>>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (c): string => c.get('account'),
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (c) => idempotentRequest(c, { scope: c.get('account') }),
});

export const app = new Hono<Application>()
  .use(headgate({ perAddress: ['100/1m'], address: (c) => c.req.header('cf-connecting-ip') }))
  .use(headgate(gate))
  .get('/chats/:id', headgate(gate, { cost: (c) => c.get('account').length }), (c) => {
    servedFromCache(c);
    const accepted: boolean | undefined = passageOf(c)?.decision?.accepted;
    // The type of the path's parameter is the same with and without the gate.
    const id: string = c.req.param('id');
    return c.json({ accepted, id });
  })
  .post('/emails', async (c) => c.text(await fieldOfBody(c, 'account_id')));

// @ts-expect-error the context does not have this variable
createGate<Context<Application>>({ limiter: gate, account: (c) => c.get('nobody'), route: routeOf });
