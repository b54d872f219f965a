import 'reflect-metadata';
import { All, Controller, Module, Req, Res, UseInterceptors } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { Request, Response } from 'express';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  Headgate,
  HeadgateInterceptor,
  HeadgateModule,
  idempotentRequest,
  type NestRequest,
  readAhead,
  routeOf,
} from '../../src/adapters/nest.ts';
import type { AdapterSubject, SuiteApp, SuiteServer } from './adapter-suite/subject.ts';
import { takeAnyBody } from './suite-fastify.ts';
import { bodyOf, headerOf, nodeBody, writeNode } from './suite-node.ts';

/** How the gate is mounted. */
type Mount = 'module' | 'interceptor';

/** Nest on one of its platforms. `serve` gets the application of that platform. */
export function nestSubject<App>(
  name: string,
  platform: () => AbstractHttpAdapter & { getInstance(): App },
  serve: (app: App) => Promise<SuiteServer>,
  mount: Mount = 'module',
): AdapterSubject<NestRequest> {
  return {
    name,
    header: headerOf,
    route: routeOf,
    idempotentRequest,
    async listen(suite) {
      const app = await NestFactory.create(moduleOf(suite, mount), platform(), { logger: false, bodyParser: false });
      await app.use(readAhead({ maxBytes: 1_000_000 })).init();
      return serve(app.getHttpAdapter().getInstance());
    },
  };
}

/** Nest's Fastify platform, over HTTP/1 or HTTP/2. */
export function nestOnFastify(options: object = {}): FastifyAdapter {
  const adapter = new FastifyAdapter({ forceCloseConnections: true, ...options });
  takeAnyBody(adapter.getInstance());
  return adapter;
}

/** Calls the decorators as functions, because this repository is not compiled with Nest's kind of decorators. */
function moduleOf({ gates, routes, handle }: SuiteApp<NestRequest>, mount: Mount) {
  class Things {}
  for (const [index, { path, options }] of routes.entries()) {
    const [name, method] = [`handle${index}`, { value: handlerOf(handle), configurable: true }];
    Object.defineProperty(Things.prototype, name, method);
    Req()(Things.prototype, name, 0);
    Res()(Things.prototype, name, 1);
    All(path)(Things.prototype, name, method);
    if (options) Headgate(options)(Things.prototype, name, method);
  }
  Controller()(Things);
  if (mount === 'interceptor') UseInterceptors(...gates.map((gate) => new HeadgateInterceptor(gate)))(Things);
  class App {}
  const imports = mount === 'module' ? gates.map((gate) => HeadgateModule.forRoot(gate)) : [];
  Module({ imports, controllers: [Things] })(App);
  return App;
}

function handlerOf(handle: SuiteApp<NestRequest>['handle']) {
  return (request: Request | FastifyRequest, response: Response | FastifyReply) => {
    const body = () => ('raw' in request ? (request.body as Buffer) : bodyOf(request));
    return handle({ body }, (answer) => {
      if ('raw' in response) response.code(answer.status).headers(answer.headers).send(nodeBody(answer));
      else writeNode(response, answer);
    });
  };
}
