// Express, without any other framework.
import express from 'express';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import {
  fieldOfBody,
  headgate,
  idempotentRequest,
  passageOf,
  readAhead,
  routeOf,
  servedFromCache,
} from 'headgate/express';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';

const gate = createGate<express.Request>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (request) => fieldOfBody(request, 'account_id'),
  route: routeOf,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});

const app = express();
app.use(readAhead({ maxBytes: 1_000 }), express.json());
app.use(headgate({ perAddress: ['100/1m'], address: (request) => request.ip }), headgate(gate));
app.get('/chats/:id', headgate(gate, { cost: 2 }), (request, response) => {
  servedFromCache(response);
  const accepted: boolean | undefined = passageOf(response)?.decision?.accepted;
  response.send(`${request.params.id} ${accepted}`);
});

// @ts-expect-error a request of Express does not have this property
createGate<express.Request>({ account: (request) => request.nothing });
