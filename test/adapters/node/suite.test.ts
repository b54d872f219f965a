import type { IncomingMessage } from 'node:http';
import connect from 'connect';
import { listen } from 'headgate-testbed/listen';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, type NodeHandler, withHeadgate } from '../../../src/adapters/node.ts';
import type { AdapterSubject } from '../../support/adapter-suite/subject.ts';
import { adapterSuite } from '../../support/adapter-suite/suite.ts';
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
    listen: ({ gates, routes, handle }) =>
      listen((request, response) => {
        const options = routes.find(({ path }) => request.url?.startsWith(path.slice(0, 7)))?.options;
        const handler: NodeHandler = () => {
          handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(() => {
            if (!response.headersSent) response.writeHead(500).end('failed');
          });
        };
        gates.reduceRight((inner, gate) => withHeadgate(gate, inner, options), handler)(request, response);
      }),
  },
);

adapterSuite<IncomingMessage>(
  { describe, it },
  {
    ...common,
    name: 'connect',
    listen({ gates, routes, handle }) {
      const app = connect();
      for (const { path, options } of routes) {
        for (const gate of gates) app.use(path.replace('/:id', ''), headgate(gate, options));
      }
      app.use((request, response, next) => {
        handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(next);
      });
      return listen(app);
    },
  },
);
