import Router from '@koa/router';
import Koa from 'koa';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/koa.ts';
import { adapterSuite } from '../../src/testing/index.ts';
import { listen } from '../support/listen.ts';
import { bodyOf, headerOf, nodeBody } from '../support/suite-node.ts';

const AT_THE_END = 'Koa writes when every middleware is done: what fails or answers last is the answer';

adapterSuite<Koa.Context>(
  { describe, it },
  {
    name: 'koa',
    header: headerOf,
    route: routeOf,
    idempotentRequest,
    gaps: {
      'a handler that fails after it wrote: what it wrote is the outcome': AT_THE_END,
      'a handler that answers twice: the first answer is the outcome': AT_THE_END,
    },
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
      return listen(app.use(router.routes()).callback());
    },
  },
);
