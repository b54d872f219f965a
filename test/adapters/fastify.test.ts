import fastify, { type FastifyRequest } from 'fastify';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/fastify.ts';
import { adapterSuite } from '../../src/testing/index.ts';
import { headerOf, nodeBody } from '../support/suite-node.ts';

adapterSuite<FastifyRequest>(
  { describe, it },
  {
    name: 'fastify',
    header: headerOf,
    route: routeOf,
    idempotentRequest,
    async listen({ gate, routes, handle }) {
      const app = fastify({ forceCloseConnections: true });
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
      app.register(headgate(gate));
      app.register(async (inner) => {
        for (const { path, options } of routes) {
          inner.all(path, { config: { headgate: options } }, async (request, reply) => {
            await handle({ body: () => request.body as Buffer }, (answer) =>
              reply.code(answer.status).headers(answer.headers).send(nodeBody(answer)),
            );
            return reply;
          });
        }
      });
      const url = await app.listen({ port: 0, host: '127.0.0.1' });
      return { port: Number(new URL(url).port), close: () => app.close() };
    },
  },
);
