import { type Context, Hono } from 'hono';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/hono.ts';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { listenWeb } from '../support/listen-web.ts';
import { answerOf, webResponse } from '../support/suite-web.ts';

adapterSuite<Context>(
  { describe, it },
  {
    name: 'hono',
    header: (c, name) => c.req.header(name),
    route: routeOf,
    idempotentRequest,
    listen({ gates, routes, handle }) {
      const app = new Hono().onError((_, c) => c.text('failed', 500));
      for (const { path, options } of routes) {
        for (const gate of gates) app.all(path, headgate(gate, options));
        app.all(path, async (c) => webResponse(await answerOf(handle, c.req.raw)));
      }
      return listenWeb(app.fetch);
    },
  },
);
