import { type Context, Hono } from 'hono';
import { compress } from 'hono/compress';
import { cors } from 'hono/cors';
import { streamSSE } from 'hono/streaming';
import { describe, expect, it } from 'vitest';
import { headgate, idempotentRequest, passageOf, routeOf, servedFromCache } from '../../src/adapters/hono.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

function parts(options: Partial<GateOptions<Context>> = {}, max = '5/1m') {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: [max] } });
  const gate = createGate<Context>({ limiter, account: () => 'a', route: routeOf, ...options });
  const keyed: GateOptions<Context> = {
    limiter,
    account: () => 'a',
    route: routeOf,
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (c) => idempotentRequest(c, { scope: 'app_1' }),
  };
  return { limiter, gate, keyedGate: createGate(keyed) };
}

const POST = (body: BodyInit, headers = {}) => ({
  method: 'POST',
  headers: { 'idempotency-key': 'k', ...headers },
  body: body as string,
});
type BodyInit = string | FormData;

describe('routeOf', () => {
  const recorded: string[] = [];
  const { gate } = parts({
    route: (c) => {
      recorded.push(routeOf(c));
      return undefined;
    },
  });
  const ok = (c: Context) => c.text('ok');
  const inFront = new Hono()
    .use(headgate(gate))
    .use('/things/*', (_, next) => next())
    .get('/things/new', ok)
    .get('/things/:id', ok)
    .all('/any/:id', ok)
    .get('/files/*', ok)
    .get('/images/*', ok)
    .get('/*', (_, next) => next())
    .get('/chats/:id', ok)
    .all('/late/:id', ok)
    .get('/images/small/*', ok)
    .route('/sub', new Hono().post('/:id', ok));
  const inside = new Hono()
    .get('/:a', headgate(gate), ok)
    .get('/wild/*', headgate(gate), ok)
    .get('/wild/:a', ok)
    .all('/all/:id', headgate(gate), ok);

  it.each<[Hono, string, string, string]>([
    [inFront, 'GET', '/things/new', 'GET /things/new'],
    [inFront, 'GET', '/things/7', 'GET /things/:id'],
    [inFront, 'HEAD', '/things/7', 'GET /things/:id'],
    [inFront, 'PUT', '/any/7', 'PUT /any/:id'],
    [inFront, 'GET', '/files/a/b', 'GET /files/*'],
    [inFront, 'POST', '/sub/7', 'POST /sub/:id'],
    // Behind a wildcard of the same method, for example of static files.
    [inFront, 'GET', '/chats/7', 'GET /chats/:id'],
    [inFront, 'GET', '/late/7', 'GET /late/:id'],
    [inFront, 'GET', '/images/small/7', 'GET /images/small/*'],
    // No route matches: all such URLs share one route.
    [inFront, 'GET', '/nothing/7', 'GET /*'],
    [inside, 'GET', '/7', 'GET /:a'],
    [inside, 'GET', '/wild/7', 'GET /wild/*'],
    [inside, 'PATCH', '/all/7', 'PATCH /all/:id'],
  ])('%#: %s %s', async (app, method, path, route) => {
    await app.request(path, { method });
    expect(recorded.pop()).toBe(route);
  });
});

describe('headgate in an app of Hono', () => {
  it("the gate's own answer has the fields that middleware in front sets, before or after next()", async () => {
    const { gate } = parts({}, '1/1m');
    const app = new Hono()
      .use(cors({ origin: 'http://y', exposeHeaders: ['retry-after'] }))
      .use(async (c, next) => {
        c.header('x-before', '1');
        await next();
        c.header('x-after', '1');
      })
      .use(headgate(gate))
      .get('/', (c) => c.text('ok'));
    await app.request('/');
    const { status, headers } = await app.request('/', { headers: { origin: 'http://y' } });
    expect([status, headers.get('access-control-allow-origin')]).toEqual([429, 'http://y']);
    expect([headers.get('x-before'), headers.get('x-after'), headers.get('retry-after')]).toEqual(['1', '1', '60']);
  });

  it.each<[string, (c: Context) => void]>([
    ['c.header()', (c) => c.header('cache-control', 'private')],
    ['c.res', (c) => c.res.headers.set('cache-control', 'private')],
    ['c.header() after another middleware has read c.res', (c) => c.res && c.header('cache-control', 'private')],
  ])(
    "I4: the gate's fields and stored fields override those that middleware in front set with %s",
    async (_name, set) => {
      const { keyedGate } = parts({}, '1/1m');
      const app = new Hono()
        .use(async (c, next) => {
          set(c);
          c.header('x-beside', '1');
          await next();
        })
        .use(headgate(keyedGate))
        .post('/', (c) => {
          c.header('cache-control', 'public, max-age=9');
          return c.text('sent');
        });
      const fieldsOf = async (init: RequestInit) => {
        const { status, headers } = await app.request('/', init);
        return [status, headers.get('cache-control'), headers.get('x-beside')];
      };
      expect(await fieldsOf(POST('x'))).toEqual([200, 'public, max-age=9', '1']);
      expect(await fieldsOf(POST('x'))).toEqual([200, 'public, max-age=9', '1']);
      expect(await fieldsOf({ method: 'POST' })).toEqual([429, 'no-store', '1']);
    },
  );

  it('a stored answer is not mixed with the response that it replaces: type and cookies are those of the handler', async () => {
    const { keyedGate } = parts();
    const app = new Hono().use(headgate(keyedGate)).post('/', (c) => {
      c.header('set-cookie', 'a=1', { append: true });
      c.header('set-cookie', 'b=2', { append: true });
      return c.json({ a: 1 });
    });
    const first = await app.request('/', POST('x'));
    expect([first.headers.getSetCookie(), first.headers.get('content-type')]).toEqual([
      ['a=1', 'b=2'],
      'application/json',
    ]);
    const second = await app.request('/', POST('x'));
    expect([await second.json(), second.headers.get('content-type')]).toEqual([{ a: 1 }, 'application/json']);
    expect([second.headers.getSetCookie(), second.headers.get('idempotency-replayed')]).toEqual([[], 'true']);
  });

  it('a body that is compressed in front of the gate is stored uncompressed', async () => {
    const { keyedGate } = parts();
    const long = 'long '.repeat(1_000);
    const app = new Hono().use(compress(), headgate(keyedGate)).post('/', (c) => c.text(long));
    const encoded = { 'accept-encoding': 'gzip' };
    expect((await app.request('/', POST('x', encoded))).headers.get('content-encoding')).toBe('gzip');
    expect(await (await app.request('/', POST('x'))).text()).toBe(long);
  });

  it.each<[string, (c: Context) => Promise<unknown>]>([
    ['formData', async (c) => (await c.req.formData()).get('to')],
    ['parseBody', async (c) => (await c.req.parseBody()).to],
  ])('I13: %s reads a multipart body', async (_name, read) => {
    const { keyedGate } = parts();
    const app = new Hono().use(headgate(keyedGate)).post('/', async (c) => c.text(String(await read(c))));
    const form = new FormData();
    form.set('to', 'ann');
    expect(await (await app.request('/', POST(form))).text()).toBe('ann');
    expect((await app.request('/', POST(form))).headers.get('idempotency-replayed')).toBe('true');
  });

  it('server-sent events are streamed and replayed', async () => {
    const { keyedGate } = parts();
    const app = new Hono().use(headgate(keyedGate)).post('/', (c) =>
      streamSSE(c, async (stream) => {
        for (const data of ['1', '2', '3']) {
          await stream.writeSSE({ data });
          await stream.sleep(2);
        }
      }),
    );
    const first = await (await app.request('/', POST('x'))).text();
    expect(first).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n');
    const second = await app.request('/', POST('x'));
    expect([await second.text(), second.headers.get('content-type')]).toEqual([first, 'text/event-stream']);
  });

  it('S12: the handler finds its passage; the charge of an answer from a cache is refunded', async () => {
    const { gate, limiter } = parts();
    let seen: number | undefined;
    const app = new Hono().use(headgate(gate)).get('/', (c) => {
      seen = passageOf(c)?.decision?.shown?.remaining;
      servedFromCache(c);
      return c.text('ok');
    });
    await app.request('/');
    await Promise.resolve();
    expect([seen, (await limiter.peek({ account: 'a', route: 'GET /' }))[0]?.remaining]).toEqual([4, 5]);
  });

  it('passes work that continues after the answer to the execution context of the runtime', async () => {
    const known: Promise<unknown>[] = [];
    const { keyedGate } = parts();
    const app = new Hono().use(headgate(keyedGate)).post('/', (c) =>
      streamSSE(c, async (stream) => {
        await stream.sleep(5);
        await stream.writeSSE({ data: '1' });
      }),
    );
    const context = { waitUntil: (promise: Promise<unknown>) => known.push(promise), passThroughOnException() {} };
    const response = await app.request('/', POST('x'), {}, context as never);
    expect(known).toHaveLength(1);
    await response.text();
    await known[0];
  });
});
