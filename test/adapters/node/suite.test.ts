import type { IncomingMessage } from 'node:http';
import connect from 'connect';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, withHeadgate } from '../../../src/adapters/node.ts';
import { type AdapterSubject, adapterSuite } from '../../../src/testing/index.ts';
import { listen } from '../../support/listen.ts';
import { bodyOf, headerOf, writeNode } from '../../support/suite-node.ts';

const common: Omit<AdapterSubject<IncomingMessage>, 'name' | 'listen'> = {
  header: headerOf,
  // Without a router, only the program knows the template.
  route: ({ method }) => `${method} /things/:id`,
  idempotentRequest,
};

adapterSuite<IncomingMessage>(
  { describe, it },
  {
    ...common,
    name: 'node:http',
    listen: ({ gate, routes, handle }) =>
      listen((request, response) => {
        const options = routes.find(({ path }) => request.url?.startsWith(path.slice(0, 7)))?.options;
        withHeadgate(
          gate,
          () => {
            handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(() => {
              if (!response.headersSent) response.writeHead(500).end('failed');
            });
          },
          options,
        )(request, response);
      }),
  },
);

adapterSuite<IncomingMessage>(
  { describe, it },
  {
    ...common,
    name: 'connect',
    listen({ gate, routes, handle }) {
      const app = connect();
      for (const { path, options } of routes) app.use(path.replace('/:id', ''), headgate(gate, options));
      app.use((request, response, next) => {
        handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(next);
      });
      return listen(app);
    },
  },
);
