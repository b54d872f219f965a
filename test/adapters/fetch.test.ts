import { describe, it } from 'vitest';
import { idempotentRequest, withHeadgate } from '../../src/adapters/fetch.ts';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenWeb } from '../support/listen-web.ts';
import { answerOf, THROWN_GAPS, webResponse } from '../support/suite-web.ts';

adapterSuite<Request>(
  { describe, it },
  {
    name: 'fetch',
    header: ({ headers }, name) => headers.get(name) ?? undefined,
    route: ({ method, url }) => `${method} ${new URL(url).pathname.replace(/\d+$/, ':id')}`,
    idempotentRequest,
    gaps: THROWN_GAPS,
    listen({ gates, routes, handle }) {
      const fetches = routes.map(({ path, options }) => ({
        path: path.replace(':id', ''),
        fetch: gates.reduceRight<(request: Request) => Promise<Response>>(
          (handler, gate) => withHeadgate(gate, handler, options),
          async (request) => webResponse(await answerOf(handle, request)),
        ),
      }));
      return listenWeb((request) => fetches.find(({ path }) => request.url.includes(path))?.fetch(request));
    },
  },
);
