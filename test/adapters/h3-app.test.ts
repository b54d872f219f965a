import { H3, type H3Event, HTTPError, onError, readBody } from 'h3';
import { describe, expect, it } from 'vitest';
import { headgate, idempotentRequest, passageOf, routeOf, servedFromCache } from '../../src/adapters/h3.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

function parts(options: Partial<GateOptions<H3Event>> = {}) {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } });
  const gate = createGate<H3Event>({
    limiter,
    account: () => 'a',
    route: routeOf,
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (event) => idempotentRequest(event, { scope: 'app_1' }),
    ...options,
  });
  return { limiter, gate };
}

const keyed = {
  method: 'POST',
  headers: { 'idempotency-key': 'k', 'content-type': 'application/json' },
  body: '{"a":1}',
};

describe('headgate in an app of h3', () => {
  it('finds the template in front of the app, in a mounted app and for HEAD; URLs without a template share one route', async () => {
    const recorded: string[] = [];
    const { gate } = parts({
      route: (event) => {
        recorded.push(routeOf(event));
        return undefined;
      },
    });
    const app = new H3().use(headgate(gate)).get('/things/:id', () => 'ok');
    app.mount(
      '/sub',
      new H3().post('/:id', () => 'ok'),
    );
    await app.request('/things/7');
    await app.request('/things/7', { method: 'HEAD' });
    await app.request('/sub/7', { method: 'POST' });
    expect((await app.request('/nothing/7')).status).toBe(404);
    expect(recorded).toEqual(['GET /things/:id', 'GET /things/:id', 'POST /sub/:id', 'GET /**']);
  });

  it('the value that a handler returns and the fields that it prepares are sent and replayed', async () => {
    const { gate } = parts();
    const app = new H3().use(headgate(gate)).post('/', async (event) => {
      event.res.status = 201;
      event.res.headers.set('x-own', '1');
      return { read: await readBody(event) };
    });
    for (const replayed of [null, 'true']) {
      const response = await app.request('/', keyed);
      const { status, headers } = response;
      expect([status, headers.get('x-own'), await response.json()]).toEqual([201, '1', { read: { a: 1 } }]);
      expect(headers.get('idempotency-replayed')).toBe(replayed);
    }
  });

  it("I4: the gate's fields and stored fields override fields prepared in front of the gate", async () => {
    const { gate } = parts({ cost: () => 5 });
    const app = new H3();
    app.use((event) => {
      event.res.headers.set('cache-control', 'private');
      event.res.headers.append('vary', 'origin');
      event.res.headers.set('x-beside', '1');
      event.res.errHeaders.set('cache-control', 'private');
      event.res.errHeaders.set('x-beside', '2');
    });
    app.use(headgate(gate)).post('/', (event) => {
      event.res.headers.set('cache-control', 'public, max-age=9');
      event.res.headers.append('vary', 'accept-language');
      return 'sent';
    });
    const fieldsOf = async (init: RequestInit) => {
      const { status, headers } = await app.request('/', init);
      return [status, headers.get('cache-control'), headers.get('vary'), headers.get('x-beside')];
    };
    const kept = [200, 'public, max-age=9', 'origin, accept-language', '1'];
    expect(await fieldsOf(keyed)).toEqual(kept);
    expect(await fieldsOf(keyed)).toEqual(kept);
    expect(await fieldsOf({ method: 'POST' })).toEqual([429, 'no-store', null, '2']);
  });

  it("the app's onError and middleware behind the gate see each error once, and their answer is the outcome", async () => {
    const { gate } = parts();
    const asked: string[] = [];
    const app = new H3({ silent: true, onError: (error) => void asked.push(error.message) });
    app.use(headgate(gate));
    app.use(onError((error) => (error.status === 418 ? 'tea' : undefined)));
    app.post('/', (event) => {
      throw new HTTPError({ status: event.url.search === '' ? 409 : 418, message: 'no' });
    });
    const [first, second] = [await app.request('/', keyed), await app.request('/', keyed)];
    expect([first.status, second.status, second.headers.get('idempotency-replayed')]).toEqual([409, 409, 'true']);
    expect([first.headers.get('x-ratelimit-remaining'), asked]).toEqual(['4', ['no']]);
    const tea = await app.request('/?tea', { method: 'POST' });
    expect([await tea.text(), asked]).toEqual(['tea', ['no']]);
  });

  it("the app's onResponse sees each response once, the gate's own included", async () => {
    const seen: number[] = [];
    const { gate } = parts({ cost: () => 3 });
    const app = new H3({ onResponse: (response) => void seen.push(response.status) });
    app.use(headgate(gate)).get('/', () => 'ok');
    await app.request('/');
    await app.request('/');
    expect(seen).toEqual([200, 429]);
  });

  it('S12: the handler finds its passage; the charge of an answer from a cache is refunded', async () => {
    const { gate, limiter } = parts();
    let seen: number | undefined;
    const app = new H3().use(headgate(gate)).get('/', (event) => {
      seen = passageOf(event)?.decision?.shown?.remaining;
      servedFromCache(event);
      return 'ok';
    });
    await app.request('/');
    expect([seen, (await limiter.peek({ account: 'a', route: 'GET /' }))[0]?.remaining]).toEqual([4, 5]);
  });
});
