// Node's own servers, without a framework.
import { createServer, type IncomingMessage } from 'node:http';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import { createMemoryClaimStore, createMemoryStore } from 'headgate/memory';
import { idempotentRequest, withHeadgate } from 'headgate/node';

const gate = createGate<IncomingMessage>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['60/1m'] } }),
  account: (request) => request.headers['x-account']?.toString(),
  route: (request) => request.method,
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});
createServer(withHeadgate({ perAddress: ['100/1m'] }, (_request, response) => response.end('ok')));
createServer(withHeadgate(gate, (_request, response) => response.end('ok')));
