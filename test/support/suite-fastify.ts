import type { FastifyInstance, FastifyRequest } from 'fastify';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/fastify.ts';
import type { AdapterSubject } from './adapter-suite/subject.ts';
import { listenFastify } from './listen-fastify.ts';
import { headerOf, nodeBody } from './suite-node.ts';

/** Fastify, over HTTP/1 or HTTP/2. */
export function fastifySubject(name: string, create: () => FastifyInstance): AdapterSubject<FastifyRequest> {
  return {
    name,
    header: headerOf,
    route: routeOf,
    idempotentRequest,
    async listen({ gates, routes, handle }) {
      const app = create();
      takeAnyBody(app);
      for (const gate of gates) await app.register(headgate(gate));
      for (const { path, options } of routes) {
        app.all(path, { config: { headgate: options } }, async (request, reply) => {
          await handle({ body: () => request.body as Buffer }, (answer) =>
            reply.code(answer.status).headers(answer.headers).send(nodeBody(answer)),
          );
          return reply;
        });
      }
      return listenFastify(app);
    },
  };
}

/** Reads bodies of every type as bytes. */
export function takeAnyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}
