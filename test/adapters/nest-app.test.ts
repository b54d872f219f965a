import 'reflect-metadata';
import {
  Controller,
  type ExecutionContext,
  type FactoryProvider,
  Get,
  type LoggerService,
  Module,
  type ModuleMetadata,
  Post,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, NestFactory } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { freePort } from 'headgate-testbed/redis-server';
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import {
  Headgate,
  HeadgateGuard,
  HeadgateInterceptor,
  HeadgateModule,
  type HeadgateModuleOptions,
  idempotentRequest,
  type NestRequest,
  routeOf,
  SkipHeadgate,
} from '../../src/adapters/nest.ts';
import { createGate, createIdempotency, createLimiter, type Gate, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { decorate, PLATFORMS, startNest } from '../support/nest-app.ts';

type UserRequest = NestRequest & { user?: string | undefined };

/** Sets the user, like an authentication guard of a route. */
const authenticated = {
  canActivate(context: ExecutionContext) {
    const request = context.switchToHttp().getRequest<UserRequest>();
    request.user = request.headers['x-user']?.toString();
    if (request.user === undefined) throw new UnauthorizedException();
    return true;
  },
};

const gateOf = (options: Partial<GateOptions<UserRequest>> = {}) =>
  createGate<UserRequest>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } }),
    account: ({ user }) => user,
    route: routeOf,
    ...options,
  });

async function ask(url: string, user?: string) {
  const answer = await fetch(url, user === undefined ? {} : { headers: { 'x-user': user } });
  return [answer.status, answer.headers.get('x-ratelimit-remaining')];
}

describe.each(PLATFORMS)('the place of the gate in a Nest application on %s', (platform) => {
  const start = async (mount: 'guard' | 'interceptor' | undefined, metadata: ModuleMetadata, gate = gateOf()) => {
    class Things {
      all() {
        return 'ok';
      }
    }
    decorate(Things, 'all', Get('things'));
    UseGuards(authenticated, ...(mount === 'guard' ? [new HeadgateGuard(gate)] : []))(Things);
    if (mount === 'interceptor') UseInterceptors(new HeadgateInterceptor(gate))(Things);
    Controller()(Things);
    const url = await startNest(platform, { ...metadata, controllers: [Things] });
    return `${url}/things`;
  };

  it.each<[string, () => Promise<string>]>([
    ['the module', () => start(undefined, { imports: [HeadgateModule.forRoot(gateOf())] })],
    [
      'the module with a factory',
      () => start(undefined, { imports: [HeadgateModule.forRootAsync({ useFactory: async () => gateOf() })] }),
    ],
    [
      'APP_INTERCEPTOR',
      () =>
        start(undefined, { providers: [{ provide: APP_INTERCEPTOR, useValue: new HeadgateInterceptor(gateOf()) }] }),
    ],
    ['an interceptor of the controller', () => start('interceptor', {})],
    ['a guard of the controller, behind the other one', () => start('guard', {})],
  ])('%s: resolvers see what the guards of a controller have set', async (_, listen) => {
    const url = await listen();
    expect([await ask(url, 'a'), await ask(url, 'a'), await ask(url, 'b')]).toEqual([
      [200, '4'],
      [200, '3'],
      [200, '4'],
    ]);
    expect(await ask(url)).toEqual([401, null]);
  });

  it.each<[string, (gate: Gate<UserRequest>) => ModuleMetadata]>([
    ["the module with as: 'guard'", (gate) => ({ imports: [HeadgateModule.forRoot(gate, { as: 'guard' })] })],
    ['APP_GUARD', (gate) => ({ providers: [{ provide: APP_GUARD, useValue: new HeadgateGuard(gate) }] })],
  ])('%s: the gate runs in front of the guards of a controller', async (_, mount) => {
    const users: unknown[] = [];
    const account = ({ user }: UserRequest) => {
      users.push(user);
      return 'everybody';
    };
    const url = await start(undefined, mount(gateOf({ account })));
    expect([await ask(url, 'a'), (await ask(url))[0], users]).toEqual([[200, '4'], 401, [undefined, undefined]]);
  });

  it('in front of them it sees no account, so it refuses every request, in place of limiting none', async () => {
    const gate = gateOf({ onNoAccount: { status: 403, detail: 'no account yet' } });
    const url = await start(undefined, { imports: [HeadgateModule.forRoot(gate, { as: 'guard' })] });
    expect(await ask(url, 'a')).toEqual([403, null]);
  });

  it('limits by address are in front of the guards of a controller: they need no account', async () => {
    const url = await start(undefined, { imports: [HeadgateModule.forRoot({ perAddress: ['2/1m'] })] });
    expect([await ask(url), await ask(url, 'a'), (await ask(url, 'a'))[0]]).toEqual([[401, '1'], [200, '0'], 429]);
  });

  it('a guard of an earlier module is in front of the gate, also of a gate that is a guard', async () => {
    class Authentication {}
    Module({ providers: [{ provide: APP_GUARD, useValue: authenticated }] })(Authentication);
    const url = await start(undefined, {
      imports: [Authentication, HeadgateModule.forRoot(gateOf(), { as: 'guard' })],
    });
    expect([await ask(url, 'a'), await ask(url, 'a')]).toEqual([
      [200, '4'],
      [200, '3'],
    ]);
  });
});

it('HeadgateModule without forRoot() is refused: it has no gate, so no request would be limited', async () => {
  class App {}
  Module({ imports: [HeadgateModule] })(App);
  const starting = NestFactory.create(App, { logger: false, abortOnError: false });
  await expect(starting).rejects.toThrow(
    'imports: must contain HeadgateModule.forRoot(gate), got the class HeadgateModule',
  );
});

it('a module cannot be mounted as anything else', () => {
  expect(() => HeadgateModule.forRootAsync({ inject: [] } as never)).toThrow(/^useFactory: must be a function/);
  expect(() => HeadgateModule.forRoot(gateOf(), { as: 'pipe' } as unknown as HeadgateModuleOptions)).toThrow(
    /^as: must be one of interceptor, guard, got "pipe"/,
  );
});

it('limits by address from a factory must choose their place: behind guards, failed logins would not be counted', async () => {
  // Not in an application: Nest would end the process.
  const create = (options: HeadgateModuleOptions) => {
    const { providers } = HeadgateModule.forRootAsync({
      ...options,
      useFactory: async () => ({ perAddress: ['1/1m'] }),
    });
    return (providers as [FactoryProvider])[0].useFactory(new Map());
  };
  await expect(create({})).rejects.toThrow(/^as: must be 'guard' or 'interceptor' for limits by address/);
  expect(await create({ as: 'guard' })).toBeInstanceOf(HeadgateGuard);
  expect(await create({ as: 'interceptor' })).toBeInstanceOf(HeadgateInterceptor);
});

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
  decorate(Sending, 'send', Get());
  class Open extends Sending {}
  class Shared extends Sending {}
  class Own extends Sending {}
  Controller('open')(Open);
  SkipHeadgate()(Open);
  Controller('shared')(Shared);
  Headgate({ account: () => 'everybody' })(Shared);
  Controller('own')(Own);
  const url = await startNest('express', {
    imports: [HeadgateModule.forRoot(gate)],
    controllers: [Open, Shared, Own],
  });
  const left = async (path: string, account: string) =>
    (await fetch(url + path, { headers: { 'x-account': account } })).headers.get('x-ratelimit-remaining');
  expect([await left('/open', 'a'), await left('/shared', 'a'), await left('/shared', 'b')]).toEqual([null, '4', '3']);
  expect([await left('/own', 'a'), await left('/own', 'b'), await left('/own', 'b')]).toEqual(['4', '4', '3']);
});

describe.each(PLATFORMS)('@Headgate on %s', (platform) => {
  it('S2: a method has its own limits, in place of those of its class', async () => {
    class Things {
      own() {
        return 'ok';
      }
      other() {
        return 'ok';
      }
    }
    for (const name of ['own', 'other']) decorate(Things, name, Get(name));
    Controller()(Things);
    Headgate({ limits: ['7/1m'] })(Things);
    decorate(Things, 'own', Headgate({ limits: ['2/1m'] }));
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['50/1m'] } });
    const url = await startNest(platform, {
      imports: [HeadgateModule.forRoot(gateOf({ limiter, account: () => 'a' }))],
      controllers: [Things],
    });
    const statuses = async (path: string, times: number) => {
      const seen: unknown[] = [];
      for (let i = 0; i < times; i++) seen.push((await ask(`${url}/${path}`))[0]);
      return seen;
    };
    expect(await statuses('own', 3)).toEqual([200, 200, 429]);
    expect(await statuses('other', 8)).toEqual([...Array.from({ length: 7 }, () => 200), 429]);
  });
});

describe.each(PLATFORMS)('@SkipHeadgate on %s', (platform) => {
  it('a class, a method, and a method of a skipped class with @Headgate', async () => {
    class Skipped {
      open() {
        return 'ok';
      }
      again() {
        return 'ok';
      }
    }
    class Limited {
      limited() {
        return 'ok';
      }
      health() {
        return 'ok';
      }
    }
    for (const name of ['open', 'again']) decorate(Skipped, name, Get(name));
    for (const name of ['limited', 'health']) decorate(Limited, name, Get(name));
    Controller()(Skipped);
    Controller()(Limited);
    SkipHeadgate()(Skipped);
    decorate(Skipped, 'again', Headgate({ cost: 2 }));
    decorate(Limited, 'health', SkipHeadgate());
    const gate = gateOf({ account: () => 'a' });
    const url = await startNest(platform, {
      imports: [HeadgateModule.forRoot(gate)],
      controllers: [Skipped, Limited],
    });
    const left = async (path: string) => (await ask(`${url}/${path}`))[1];
    expect([await left('open'), await left('again'), await left('limited'), await left('health')]).toEqual([
      null,
      '3',
      '4',
      null,
    ]);
  });
});

describe.each(PLATFORMS)('idempotency keys in Nest on %s', (platform) => {
  it('I4: work with Nest’s own parsers, by the module as it is by default', async () => {
    let sent = 0;
    class Emails {
      send() {
        return `sent ${++sent}`;
      }
    }
    decorate(Emails, 'send', Post('emails'));
    Controller()(Emails);
    const gate = gateOf({
      account: ({ body }) => (body as { account_id: string }).account_id,
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
    });
    const url = await startNest(platform, { imports: [HeadgateModule.forRoot(gate)], controllers: [Emails] });
    const send = async () => {
      const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' };
      const body = JSON.stringify({ account_id: 'acc_1' });
      const answer = await fetch(`${url}/emails`, { method: 'POST', headers, body });
      return [answer.status, await answer.text(), answer.headers.get('idempotency-replayed')];
    };
    expect([await send(), await send()]).toEqual([
      [201, 'sent 1', null],
      [201, 'sent 1', 'true'],
    ]);
  });
});

describe('a hybrid application, whose microservice does not inherit guards and interceptors', () => {
  class Messages {
    sent() {
      return 'sent';
    }
    list() {
      return 'list';
    }
  }
  class Inheriting extends Messages {}
  class Skipped extends Messages {}
  class Gateway {
    received() {}
  }
  decorate(Messages, 'sent', MessagePattern('sent'));
  decorate(Messages, 'list', Get());
  // As @SubscribeMessage() of @nestjs/websockets does.
  Reflect.defineMetadata('websockets:message_mapping', true, Gateway.prototype.received);
  for (const type of [Messages, Inheriting, Skipped]) Controller()(type);
  SkipHeadgate()(Skipped);

  const create = (metadata: ModuleMetadata) => {
    class App {}
    Module({ imports: [HeadgateModule.forRoot(gateOf({ route: () => undefined }))], ...metadata })(App);
    return NestFactory.create(App, { logger: false, abortOnError: false });
  };

  it.each<[string, ModuleMetadata, string]>([
    ['a handler of messages', { controllers: [Messages] }, 'Messages.sent'],
    ['an inherited one, and another', { controllers: [Inheriting, Messages] }, 'Inheriting.sent, Messages.sent'],
    ['a handler of a WebSocket', { providers: [Gateway] }, 'Gateway.received'],
  ])('does not start with %s', async (_what, metadata, names) => {
    const error = await create(metadata).catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/a gate limits HTTP, and no messages: mark it with @SkipHeadgate\(\)/);
    expect(String(error)).toContain(names);
  });

  it('starts with @SkipHeadgate(), and handles messages', async () => {
    const app = await create({
      controllers: [Skipped],
      providers: [{ provide: 'factory', useFactory: () => new Gateway() }],
    });
    const options = { host: '127.0.0.1', port: await freePort() };
    app.connectMicroservice({ transport: Transport.TCP, options });
    await app.startAllMicroservices();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    try {
      expect(await firstValueFrom(client.send('sent', {}))).toBe('sent');
    } finally {
      client.close();
      await app.close();
    }
  });
});

it('a message of a microservice is refused, unless its handler says @SkipHeadgate(); the log says what to do', async () => {
  const runs: string[] = [];
  class Messages {
    limited() {
      return runs.push('limited');
    }
    skipped() {
      return runs.push('skipped');
    }
  }
  for (const name of ['limited', 'skipped']) decorate(Messages, name, MessagePattern(name));
  decorate(Messages, 'skipped', SkipHeadgate());
  Controller()(Messages);
  class App {}
  const mounted = { provide: APP_INTERCEPTOR, useValue: new HeadgateInterceptor(gateOf()) };
  Module({ providers: [mounted], controllers: [Messages] })(App);
  const logged: string[] = [];
  const log = (error: unknown) => void logged.push(String(error));
  const logger: LoggerService = { log: () => {}, error: log, warn: log };
  const options = { host: '127.0.0.1', port: await freePort() };
  const app = await NestFactory.createMicroservice(App, { transport: Transport.TCP, options, logger });
  await app.listen();
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  try {
    await expect(firstValueFrom(client.send('limited', {}))).rejects.toMatchObject({ status: 'error' });
    expect(await firstValueFrom(client.send('skipped', {}))).toBe(1);
  } finally {
    client.close();
    await app.close();
  }
  expect(runs).toEqual(['skipped']);
  expect(logged).toEqual([
    expect.stringContaining(
      'Messages.limited is called by "rpc": mark it with @SkipHeadgate(), and call limiter.consume()',
    ),
  ]);
});
