import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { describe, it } from 'vitest';
import { idempotentRequest, withHeadgate } from '../../src/adapters/node.ts';
import { adapterSuite } from '../../src/testing/index.ts';
import { listenHttp2 } from '../support/http2.ts';
import { bodyOf, headerOf, writeNode } from '../support/suite-node.ts';

adapterSuite<Http2ServerRequest>(
  { describe, it },
  {
    name: 'node:http2',
    header: headerOf,
    route: ({ method }) => `${method} /things/:id`,
    idempotentRequest,
    listen({ gate, routes, handle }) {
      const handler = (request: Http2ServerRequest, response: Http2ServerResponse) => {
        handle({ body: () => bodyOf(request) }, (answer) => writeNode(response, answer)).catch(() => {
          if (!response.headersSent) response.writeHead(500).end('failed');
        });
      };
      const [things, priced] = routes.map(({ options }) => withHeadgate(gate, handler, options));
      return listenHttp2((request: Http2ServerRequest, response: Http2ServerResponse) =>
        (request.url.startsWith('/priced') ? priced : things)?.(request, response),
      );
    },
  },
);
