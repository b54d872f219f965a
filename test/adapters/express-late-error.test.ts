import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import { listen } from 'headgate-testbed/listen';
import { send } from 'headgate-testbed/raw-http';
import { expect, it } from 'vitest';
import { headgate, idempotentRequest } from '../../src/adapters/express.ts';
import { createGate, createIdempotency, createLimiter } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

it.each([
  ['express 5', express],
  ['express 4', express4 as typeof express],
])('%s: the client gets the whole answer if the handler throws after it has answered', async (_name, create) => {
  const gate = createGate<express.Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } }),
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    account: () => 'a',
    route: () => 'r',
    idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
  });
  const app = create().set('env', 'test');
  let runs = 0;
  app.post('/', headgate(gate), (_request, response) => {
    response.json({ sent: ++runs });
    throw new Error('too late');
  });
  const server = await listen(app);
  try {
    const post = () => send(server.port, { method: 'POST', path: '/', headers: { 'idempotency-key': 'k' } });
    const [first, retry] = [await post(), await post()];
    expect([first.status, first.text, first.headers['idempotency-replayed']]).toEqual([200, '{"sent":1}', undefined]);
    expect([retry.text, retry.headers['idempotency-replayed']]).toEqual(['{"sent":1}', 'true']);
  } finally {
    await server.close();
  }
});
