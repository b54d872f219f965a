import { H3, type H3Event, toNodeHandler } from 'h3';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/h3.ts';
import { adapterSuite } from '../../src/testing/index.ts';
import { listen } from '../support/listen.ts';
import { answerOf, RETURNED_GAPS, webResponse } from '../support/suite-web.ts';

adapterSuite<H3Event>(
  { describe, it },
  {
    name: 'h3',
    header: ({ req }, name) => req.headers.get(name) ?? undefined,
    route: routeOf,
    idempotentRequest,
    gaps: RETURNED_GAPS,
    listen({ gate, routes, handle }) {
      const app = new H3({ silent: true });
      for (const { path, options } of routes) {
        const middleware = [headgate(gate, options)];
        app.all(path, async ({ req }) => webResponse(await answerOf(handle, req)), { middleware });
      }
      return listen(toNodeHandler(app) as never);
    },
  },
);
