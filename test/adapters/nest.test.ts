import 'reflect-metadata';
import { All, Controller, Module, Req, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { Request } from 'express';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describe, it } from 'vitest';
import {
  Headgate,
  HeadgateModule,
  idempotentRequest,
  type NestRequest,
  readAhead,
  routeOf,
} from '../../src/adapters/nest.ts';
import { adapterSuite, type SuiteApp } from '../../src/testing/index.ts';
import { bodyOf, headerOf, nodeBody, writeNode } from '../support/suite-node.ts';

/** Made by hand: decorators as Nest has them are not what this repository is compiled with. */
function moduleOf({ gate, routes, handle }: SuiteApp<NestRequest>) {
  class Things {}
  routes.forEach(({ path, options }, index) => {
    const method = (request: Request | FastifyRequest, response: never) => answer(handle, request, response);
    Object.defineProperty(Things.prototype, `handle${index}`, { value: method, configurable: true });
    const descriptor = { value: method };
    Req()(Things.prototype, `handle${index}`, 0);
    Res()(Things.prototype, `handle${index}`, 1);
    All(path)(Things.prototype, `handle${index}`, descriptor as never);
    if (options) Headgate(options)(Things.prototype, `handle${index}`, descriptor as never);
  });
  Controller()(Things);
  class App {}
  Module({ imports: [HeadgateModule.forRoot(gate)], controllers: [Things] })(App);
  return App;
}

const raw = (request: Request | FastifyRequest) => ('raw' in request ? request.raw : request);

function answer(
  handle: SuiteApp<NestRequest>['handle'],
  request: Request | FastifyRequest,
  response: NonNullable<Request['res']> | FastifyReply,
) {
  const read = () => (Buffer.isBuffer(request.body) ? request.body : bodyOf(raw(request)));
  return handle({ body: read }, (given) => {
    if ('raw' in response) response.code(given.status).headers(given.headers).send(nodeBody(given));
    else writeNode(response, given);
  });
}

for (const platform of ['express', 'fastify'] as const) {
  adapterSuite<NestRequest>(
    { describe, it },
    {
      name: `nest on ${platform}`,
      header: headerOf,
      route: routeOf,
      idempotentRequest,
      async listen(suite) {
        const adapter =
          platform === 'express' ? new ExpressAdapter() : new FastifyAdapter({ forceCloseConnections: true });
        const app = await NestFactory.create(moduleOf(suite), adapter, {
          logger: false,
          rawBody: false,
          bodyParser: false,
        });
        app.use(readAhead({ maxBytes: 1_000_000 }));
        if (platform === 'fastify') {
          const instance = app.getHttpAdapter().getInstance();
          instance.removeAllContentTypeParsers();
          instance.addContentTypeParser(
            '*',
            { parseAs: 'buffer' },
            (_: unknown, body: unknown, done: (error: null, body: unknown) => void) => done(null, body),
          );
        }
        await app.listen(0, '127.0.0.1');
        const server = app.getHttpServer();
        return {
          port: server.address().port,
          close: () => {
            server.closeAllConnections();
            return app.close();
          },
        };
      },
    },
  );
}
