import Router from '@koa/router';
import Koa from 'koa';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/koa.ts';
import type { AdapterSubject, SuiteServer } from './adapter-suite/subject.ts';
import { bodyOf, headerOf, nodeBody } from './suite-node.ts';

/** Koa, over HTTP/1 or HTTP/2. */
export function koaSubject(
  name: string,
  serve: (listener: ReturnType<Koa['callback']>) => Promise<SuiteServer>,
): AdapterSubject<Koa.Context> {
  return {
    name,
    header: headerOf,
    route: routeOf,
    idempotentRequest,
    listen({ gates, routes, handle }) {
      const [app, router] = [new Koa(), new Router()];
      app.silent = true;
      for (const { path, options } of routes) {
        for (const gate of gates) router.all(path, headgate<Koa.Context>(gate, options));
        router.all(path, (context) =>
          handle({ body: () => bodyOf(context.req) }, (answer) => {
            context.status = answer.status;
            context.body = nodeBody(answer) ?? '';
            context.set(answer.headers);
          }),
        );
      }
      return serve(app.use(router.routes()).callback());
    },
  };
}
