import { Elysia } from 'elysia';
import { describe, it } from 'vitest';
import { type ElysiaRequest, headgate, idempotentRequest, routeOf } from '../../src/adapters/elysia.ts';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenWeb } from '../support/listen-web.ts';
import { answerOf, webResponse } from '../support/suite-web.ts';

adapterSuite<ElysiaRequest>(
  { describe, it },
  {
    name: 'elysia',
    header: ({ request }, name) => request.headers.get(name) ?? undefined,
    route: routeOf,
    idempotentRequest,
    listen({ gates, routes, handle }) {
      const own = routes.flatMap(({ path, options }) => (options === undefined ? [] : [[path, options] as const]));
      // By default Elysia does not accept host names shorter than four characters, such as the suite's.
      const app = new Elysia({ handler: { standardHostname: false } });
      // The one that is used last is in front.
      for (const gate of gates.toReversed()) app.use(headgate(gate, { routes: Object.fromEntries(own) }));
      for (const { path } of routes) {
        const answer = async ({ request }: { request: Request }) => webResponse(await answerOf(handle, request));
        app.all(path, answer, { parse: 'none' });
      }
      return listenWeb(app.fetch);
    },
  },
);
