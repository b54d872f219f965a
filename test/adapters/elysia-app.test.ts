import { Elysia } from 'elysia';
import { describe, expect, it } from 'vitest';
import {
  type ElysiaRequest,
  fieldOfBody,
  headgate,
  idempotentRequest,
  passageOf,
  routeOf,
  servedFromCache,
} from '../../src/adapters/elysia.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/store.ts';

function parts(options: Partial<GateOptions<ElysiaRequest>> = {}) {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } });
  const gate = createGate<ElysiaRequest>({
    limiter,
    account: () => 'a',
    route: routeOf,
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (given) => idempotentRequest(given, { scope: 'app_1' }),
    ...options,
  });
  return { limiter, gate };
}

const ask = (path: string, init?: RequestInit) => new Request(`http://localhost${path}`, init);
const keyed = (body = '{"account_id":"acc_1"}') =>
  ask('/', { method: 'POST', headers: { 'idempotency-key': 'k', 'content-type': 'application/json' }, body });

describe('headgate in an app of Elysia', () => {
  it('knows the template that will match, whenever its route was added; what matches none is one route', async () => {
    const told: string[] = [];
    const { gate } = parts({
      route: (given) => {
        told.push(routeOf(given));
        return undefined;
      },
    });
    const app = new Elysia()
      .use(headgate(gate))
      .get('/things/new', () => 'ok')
      .get('/things/:id', () => 'ok')
      .group('/sub', (group) => group.all('/:id', () => 'ok'))
      .use(new Elysia({ prefix: '/plugged' }).post('/', () => 'ok'));
    const asked: [string, string, number, string][] = [
      ['GET', '/things/new', 200, 'GET /things/new'],
      ['GET', '/things/7?a=/b', 200, 'GET /things/:id'],
      ['GET', '/things/7/', 200, 'GET /things/:id'],
      ['PUT', '/sub/7', 200, 'PUT /sub/:id'],
      ['POST', '/plugged', 200, 'POST /plugged'],
      ['GET', '/nothing', 404, 'GET /*'],
      ['PATCH', '/things/7', 404, 'PATCH /*'],
    ];
    for (const [method, path, status, route] of asked) {
      expect([(await app.handle(ask(path, { method }))).status, told.pop()]).toEqual([status, route]);
    }
  });

  it('I13: a body that Elysia parses is there as ever, and so is its account', async () => {
    const told: string[] = [];
    const { gate } = parts({
      account: async (given) => {
        told.push(await fieldOfBody(given, 'account_id'));
        return told.at(-1);
      },
    });
    const app = new Elysia().use(headgate(gate)).post('/', ({ body }) => ({ body }));
    for (const replayed of [null, 'true']) {
      const response = await app.handle(keyed());
      expect(await response.json()).toEqual({ body: { account_id: 'acc_1' } });
      expect(response.headers.get('idempotency-replayed')).toBe(replayed);
    }
    // A replay is of one account, too.
    expect(told).toEqual(['acc_1', 'acc_1']);
  });

  it("errors: Elysia's answer is the outcome", async () => {
    const { gate } = parts();
    const app = new Elysia()
      .use(headgate(gate))
      .onError(({ error }) => new Response(`caught ${(error as Error).message}`, { status: 418 }))
      .post('/', () => {
        throw new Error('no');
      });
    const [first, second] = [await app.handle(keyed()), await app.handle(keyed())];
    expect([first.status, await first.text(), first.headers.get('x-ratelimit-remaining')]).toEqual([
      418,
      'caught no',
      '4',
    ]);
    expect([second.status, await second.text()]).toEqual([418, 'caught no']);
  });

  it('a generator is streamed, and replayed', async () => {
    const { gate } = parts();
    const app = new Elysia().use(headgate(gate)).post('/', function* () {
      yield 'one ';
      yield 'two';
    });
    const first = await (await app.handle(keyed())).text();
    expect(first).toContain('two');
    expect(await (await app.handle(keyed())).text()).toBe(first);
  });

  it('S12: the passage is there for the handler, by its context', async () => {
    const { gate, limiter } = parts();
    let seen: number | undefined;
    const app = new Elysia().use(headgate(gate)).get('/', (context) => {
      seen = passageOf(context)?.decision?.shown?.remaining;
      servedFromCache(context);
      return 'ok';
    });
    await app.handle(ask('/'));
    expect([seen, (await limiter.peek({ account: 'a', route: 'GET /' }))[0]?.remaining]).toEqual([4, 5]);
  });
});
