import { H3, type H3Event } from 'h3';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/h3.ts';
import type { AdapterSubject, SuiteServer } from './adapter-suite/subject.ts';
import { answerOf, webResponse } from './suite-web.ts';

/** h3 on the server that `serve` starts. */
export function h3Subject(
  name: string,
  serve: (app: H3) => SuiteServer | Promise<SuiteServer>,
): AdapterSubject<H3Event> {
  return {
    name,
    header: ({ req }, field) => req.headers.get(field) ?? undefined,
    route: routeOf,
    idempotentRequest,
    listen({ gates, routes, handle }) {
      const app = new H3({ silent: true });
      for (const { path, options } of routes) {
        const middleware = gates.map((gate) => headgate(gate, options));
        app.all(path, async ({ req }) => webResponse(await answerOf(handle, req)), { middleware });
      }
      return serve(app);
    },
  };
}
