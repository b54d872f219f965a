import { type AnyElysia, Elysia } from 'elysia';
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
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

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
  it('finds the template that will match, even of routes added later; URLs without a template share one route', async () => {
    const recorded: string[] = [];
    const { gate } = parts({
      route: (given) => {
        recorded.push(routeOf(given));
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
      expect([(await app.handle(ask(path, { method }))).status, recorded.pop()]).toEqual([status, route]);
    }
  });

  describe('a gate in a plugin', () => {
    const once = () => {
      const limits = { allMethods: ['9/1m'], routes: { 'POST /emails': ['1/1m'], 'POST /plugged/emails': ['1/1m'] } };
      return parts({ limiter: createLimiter({ store: createMemoryStore(), limits }) }).gate;
    };
    const plugged = (mount: (app: Elysia) => Elysia) =>
      mount(new Elysia({ prefix: '/plugged' }) as unknown as Elysia).post('/emails', () => 'ok') as unknown as Elysia;
    const statuses = async (app: { handle(request: Request): Promise<Response> }, path: string) => {
      const post = async () => (await app.handle(ask(path, { method: 'POST' }))).status;
      return [await post(), await post()];
    };

    it('finds the templates of the whole app, however the plugin was added', async () => {
      const ways: ((plugin: Elysia) => AnyElysia)[] = [
        (plugin) => new Elysia().use(plugin),
        (plugin) => new Elysia().use(new Elysia().use(plugin)),
        (plugin) => new Elysia().use(Promise.resolve({ default: plugin })),
        (plugin) => new Elysia().use(async (app) => app.use(plugin)),
      ];
      for (const way of ways) {
        const app = way(plugged(headgate(once()))).post('/emails', () => 'ok');
        await app.modules;
        expect(await statuses(app, '/plugged/emails')).toEqual([200, 429]);
        expect(await statuses(app, '/emails')).toEqual([200, 429]);
      }
    });

    it('two gates both count, although Elysia drops duplicate wrappers; a gate in a plugin that two plugins use charges once', async () => {
      const [first, second] = [parts({ cost: () => 1 }), parts({ cost: () => 2 })];
      const limited = new Elysia({ name: 'limited' }).use(headgate(first.gate));
      const other = new Elysia({ name: 'other' }).use(limited).get('/other', () => 'ok');
      const app = new Elysia()
        .use(new Elysia().use(limited))
        .use(other)
        .use(plugged(headgate(second.gate)))
        .use(new Elysia().get('/more', () => 'ok'));
      expect((await app.handle(ask('/other'))).status).toBe(200);
      const left = async ({ limiter }: typeof first) =>
        (await limiter.peek({ account: 'a', route: 'GET /other' }))[0]?.remaining;
      expect([await left(first), await left(second)]).toEqual([4, 3]);
    });

    const refused = /must be the app that serves/;

    it('if Elysia would leave it out, every request fails instead of passing without limits', async () => {
      const inGroup = new Elysia().group('/sub', (group) => group.use(plugged(headgate(once()))));
      const dynamic = new Elysia({ aot: false }).use(plugged(headgate(once())));
      const deferred = new Elysia().use(async () => plugged(headgate(once())));
      await deferred.modules;
      const asked = [
        await inGroup.handle(ask('/sub/plugged/emails', { method: 'POST' })),
        await dynamic.handle(ask('/plugged/emails', { method: 'POST' })),
        await deferred.handle(ask('/plugged/emails', { method: 'POST' })),
      ];
      for (const answer of asked) {
        expect([answer.status, await answer.text()]).toEqual([500, expect.stringMatching(refused)]);
      }
    });

    it('throws at once if the mistake is known then: aot is off, or the app belongs to another app', () => {
      const mount = headgate(once());
      expect(() => new Elysia({ aot: false }).use(mount)).toThrow(refused);
      expect(() => new Elysia().group('/sub', (group) => group.use(mount))).toThrow(refused);
      expect(() => new Elysia().guard({}, (guarded) => guarded.use(mount))).toThrow(refused);
      const used = new Elysia();
      new Elysia().use(used);
      expect(() => used.use(mount)).toThrow(refused);
    });
  });

  it('I13: Elysia parses the body as usual, after the gate has read the account from it', async () => {
    const recorded: string[] = [];
    const { gate } = parts({
      account: async (given) => {
        recorded.push(await fieldOfBody(given, 'account_id'));
        return recorded.at(-1);
      },
    });
    const app = new Elysia().use(headgate(gate)).post('/', ({ body }) => ({ body }));
    for (const replayed of [null, 'true']) {
      const response = await app.handle(keyed());
      expect(await response.json()).toEqual({ body: { account_id: 'acc_1' } });
      expect(response.headers.get('idempotency-replayed')).toBe(replayed);
    }
    // The account is part of the fingerprint, so it is read for a replay as well.
    expect(recorded).toEqual(['acc_1', 'acc_1']);
  });

  it("Elysia's answer to an error is the outcome", async () => {
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

  it('a generator is streamed and replayed', async () => {
    const { gate } = parts();
    const app = new Elysia().use(headgate(gate)).post('/', function* () {
      yield 'one ';
      yield 'two';
    });
    const first = await (await app.handle(keyed())).text();
    expect(first).toContain('two');
    expect(await (await app.handle(keyed())).text()).toBe(first);
  });

  it('S12: the handler finds its passage by its context and gets the charge of a cached answer refunded', async () => {
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
