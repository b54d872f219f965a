import 'reflect-metadata';
import { Controller, Get, Module, UseGuards, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Headgate,
  HeadgateGuard,
  HeadgateInterceptor,
  HeadgateModule,
  type NestRequest,
} from '../../src/adapters/nest.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { type Listening, listen } from '../support/listen.ts';

const open: Listening[] = [];
afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));

/** Sets the user, like an authentication guard of a route. */
const authenticated = {
  canActivate(context: { switchToHttp(): { getRequest<T>(): T } }) {
    context.switchToHttp().getRequest<{ user?: string }>().user = 'acc_1';
    return true;
  },
};

it('a handler that two controllers inherit has the options of each controller', async () => {
  const gate = createGate<NestRequest>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } }),
    account: (request) => request.headers['x-account']?.toString(),
    route: () => 'r',
  });
  class Sending {
    send() {
      return 'sent';
    }
  }
  Get()(Sending.prototype, 'send', Object.getOwnPropertyDescriptor(Sending.prototype, 'send') as PropertyDescriptor);
  class Open extends Sending {}
  class Shared extends Sending {}
  class Own extends Sending {}
  Controller('open')(Open);
  Headgate(false)(Open);
  Controller('shared')(Shared);
  Headgate({ account: () => 'everybody' })(Shared);
  Controller('own')(Own);
  class App {}
  Module({ imports: [HeadgateModule.forRoot(gate)], controllers: [Open, Shared, Own] })(App);
  const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false });
  await app.init();
  const server = await listen(app.getHttpAdapter().getInstance());
  open.push(server);
  const left = async (path: string, account: string) =>
    (await fetch(server.url + path, { headers: { 'x-account': account } })).headers.get('x-ratelimit-remaining');
  expect([await left('/open', 'a'), await left('/shared', 'a'), await left('/shared', 'b')]).toEqual([null, '4', '3']);
  expect([await left('/own', 'a'), await left('/own', 'b'), await left('/own', 'b')]).toEqual(['4', '4', '3']);
});

describe('the place of the gate in a Nest application', () => {
  it.each([
    ['the module: in front of a route’s own guards, so a request without an account is refused', 'module', 401, null],
    ['the guard: in the order of the guards', 'guard', 200, '4'],
    ['the interceptor: behind every guard', 'interceptor', 200, '4'],
  ])('%s', async (_where, mount, status, remaining) => {
    const gate = createGate<NestRequest & { user?: string }>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } }),
      account: ({ user }) => user,
      route: () => 'r',
    });
    // Decorators are called by hand: this repository is not compiled with the kind of decorators that Nest uses.
    class Things {
      all() {
        return 'ok';
      }
    }
    const all = Object.getOwnPropertyDescriptor(Things.prototype, 'all') as PropertyDescriptor;
    Get()(Things.prototype, 'all', all);
    UseGuards(authenticated, ...(mount === 'guard' ? [new HeadgateGuard(gate)] : []))(Things.prototype, 'all', all);
    if (mount === 'interceptor') UseInterceptors(new HeadgateInterceptor(gate))(Things);
    Controller()(Things);
    class App {}
    Module({ imports: mount === 'module' ? [HeadgateModule.forRoot(gate)] : [], controllers: [Things] })(App);

    const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false });
    await app.init();
    const server = await listen(app.getHttpAdapter().getInstance());
    open.push(server);
    const answer = await fetch(server.url);
    expect([answer.status, answer.headers.get('x-ratelimit-remaining')]).toEqual([status, remaining]);
  });
});
