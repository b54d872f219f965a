import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import { listen } from 'headgate-testbed/listen';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { describe, it } from 'vitest';
import { headgate, idempotentRequest, routeOf } from '../../src/adapters/express.ts';
import { adapterSuite } from '../support/adapter-suite/suite.ts';
import { bodyOf, headerOf, writeNode } from '../support/suite-node.ts';

/** A change waits for the current version, and the one before it runs at night. */
const VERSIONS: readonly [string, typeof express][] = [
  ['express 5', express],
  ...(NIGHTLY ? [['express 4', express4] as [string, typeof express]] : []),
];

for (const [name, create] of VERSIONS) {
  adapterSuite<express.Request>(
    { describe, it },
    {
      name,
      header: headerOf,
      route: routeOf,
      idempotentRequest,
      listen({ gates, routes, handle }) {
        const app = create().set('env', 'test');
        for (const { path, options } of routes) {
          const mounted = gates.map((gate) => headgate(gate, options));
          app.all(path, ...mounted, (request, response, next) => {
            handle({ body: () => bodyOf(request) }, (answer) => {
              if (
                answer.body !== undefined &&
                typeof answer.body === 'object' &&
                !(answer.body instanceof Uint8Array)
              ) {
                return writeNode(response, answer);
              }
              const body = answer.body instanceof Uint8Array ? Buffer.from(answer.body) : answer.body;
              response.status(answer.status).set(answer.headers).send(body);
            }).catch(next);
          });
        }
        return listen(app);
      },
    },
  );
}
