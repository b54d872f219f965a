import Router from '@koa/router';
import Koa from 'koa';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/koa.ts';
import { adapterSuite } from '../../src/testing/index.ts';
import { listenHttp2 } from '../support/http2.ts';
import { listen } from '../support/listen.ts';
import { bodyOf, headerOf, nodeBody } from '../support/suite-node.ts';

for (const [name, serve] of [
  ['koa', listen],
  ['koa over HTTP/2', listenHttp2],
] as const) {
  adapterSuite<Koa.Context>(
    { describe, it },
    {
      name,
      header: headerOf,
      route: routeOf,
      idempotentRequest,
      listen({ gate, routes, handle }) {
        const [app, router] = [new Koa(), new Router()];
        app.silent = true;
        for (const { path, options } of routes) {
          router.all(path, headgate<Koa.Context>(gate, options), (context) =>
            handle({ body: () => bodyOf(context.req) }, (answer) => {
              context.status = answer.status;
              context.body = nodeBody(answer) ?? '';
              context.set(answer.headers);
            }),
          );
        }
        return serve(app.use(router.routes()).callback());
      },
    },
  );
}
